"""The request in words, compared with golden files; REGROW_UPDATE_GOLDEN=1 writes them anew."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.facts import collect_facts
from pipeline.instruction import Facts, find_code, import_line, list_styles, write_instructions
from pipeline.language.python.seams import Plan
from pipeline.library import open_library, plan_feature
from pipeline.prepare import Prepared
from pipeline.task.grade import Desk
from pipeline.task.record import Evidence, FailToPass, Grading, Instruction, Symbol
from pipeline.task.reject import Reject

GOLDEN = Path(__file__).parents[1] / "golden" / "instruction"

WANTED = {
    "function": "pantry.units.convert",
    "method": "pantry.shelf.Shelf.find",
    # The class is all that its module holds.
    "class": "pantry.labels",
}
SYMPTOMS = {
    "function": "NameError: name 'convert' is not defined",
    "method": "AttributeError: 'Shelf' object has no attribute 'find'",
    "class": "NameError: name 'Label' is not defined",
}


# Everything is shown.
OPEN = Grading(plugins=(), alarms=(), hidden=(), shortened=(), sentinels=(), clones=())


@pytest.fixture(scope="module")
def facts_of(prepared: Prepared, pantry_desk: Desk) -> Callable[[str], Facts]:
    """Return a maker of the facts on the pantry's function, method or class, without any run."""
    library = open_library(pantry_desk.tree, (".",))
    features = {it.title: it for slot in prepared.slots for it in slot}

    def make(kind: str) -> Facts:
        feature = features[WANTED[kind]]
        ids = feature.tests
        evidence = Evidence(
            fail_to_pass=tuple(
                FailToPass(id=key, ablated="failed", symptom=SYMPTOMS[kind]) for key in ids
            ),
            pass_to_pass=(),
            quarantined=(),
            runs=(),
        )
        plan = plan_feature(feature, library)
        assert isinstance(plan, Plan), plan
        return collect_facts(
            prepared, feature, plan=plan, evidence=evidence, grading=OPEN, library=library
        )

    return make


def with_docstring(facts: Facts, docstring: str, **fields: object) -> Facts:
    """Return facts of one part that is documented in another way."""
    (part,) = facts.parts
    description = replace(part.description, docstring=docstring)
    return replace(facts, parts=(replace(part, description=description, **fields),))


def written(facts: Facts) -> tuple[Instruction, ...]:
    instructions = write_instructions(facts)
    assert isinstance(instructions, tuple), instructions
    return instructions


@pytest.mark.parametrize("kind", WANTED)
def test_the_words_are_those_of_the_golden_files(facts_of: Callable[[str], Facts], kind: str):
    instructions = written(facts_of(kind))
    assert [it.style for it in instructions] == list_styles() == ["bug_report", "specification"]
    for instruction in instructions:
        golden = GOLDEN / f"{kind}.{instruction.style}.md"
        if os.environ.get("REGROW_UPDATE_GOLDEN"):
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(instruction.text)
        assert instruction.text == golden.read_text()


@pytest.mark.parametrize("kind", WANTED)
def test_every_wording_says_what_a_solver_must_know(facts_of: Callable[[str], Facts], kind: str):
    facts = facts_of(kind)
    for instruction in written(facts):
        for needed in (
            facts.feature.title,
            facts.feature.symbols[0].path,
            *(import_line(it.description.import_paths, kind=it.symbol.kind) for it in facts.parts),
            *(it.description.docstring for it in facts.parts),
            *facts.removed_files,
            *facts.feature.tests,
        ):
            assert needed in instruction.text
        assert not find_code(instruction.text, facts.body_lines)
        assert "\n\n\n" not in instruction.text
        assert not [line for line in instruction.text.split("\n") if line != line.rstrip()]


def test_many_tests_are_counted_and_not_all_named(facts_of: Callable[[str], Facts]):
    facts = facts_of("function")
    target = facts.evidence.fail_to_pass[0]
    targets = tuple(replace(target, id=f"tests/test_many.py::test[{it}]") for it in range(33))
    many = replace(facts, evidence=replace(facts.evidence, fail_to_pass=targets))
    for instruction in written(many):
        assert instruction.text.count("tests/test_many.py::test[") == 20
        assert "13 more" in instruction.text


def test_hidden_tests_are_told_of_and_never_named(facts_of: Callable[[str], Facts]):
    facts = facts_of("function")
    ids = [it.id for it in facts.evidence.fail_to_pass]
    for instruction in written(replace(facts, grading=replace(OPEN, hidden=(ids[-1],)))):
        assert ids[-1] not in instruction.text
        assert all(key in instruction.text for key in ids[:-1])
        assert "Further checks of the same behaviour, which are not shown" in instruction.text
    for instruction in written(facts):
        assert "not shown" not in instruction.text


def test_a_text_without_docstring_or_exports_is_whole(facts_of: Callable[[str], Facts]):
    facts = facts_of("function")
    bare = replace(with_docstring(facts, "", exports=()), symptoms=())
    for instruction in written(bare):
        assert "None" not in instruction.text
        assert "`pantry/__init__.py`" not in instruction.text
        assert facts.feature.title in instruction.text


def test_each_part_of_a_feature_is_told_of(facts_of: Callable[[str], Facts]):
    one, other = facts_of("function"), facts_of("method")
    feature = replace(one.feature, kind="cross-cutting", title="pantry.units.convert and 1 more")
    both = replace(one, feature=feature, parts=one.parts + other.parts)
    for instruction in written(both):
        for part in both.parts:
            assert f"`{part.symbol.path}`" in instruction.text
            assert part.description.docstring.split("\n")[0] in instruction.text
            assert part.description.signatures[0].text in instruction.text
    assert "complete but for 2 things that belong together" in written(both)[1].text


@pytest.mark.parametrize(
    "docstring",
    [
        "Convert; that is, grams = amount * _factor(source).",
        "Convert by\n    grams = amount * _factor( source )",
    ],
)
def test_a_docstring_that_holds_the_code_is_rejected(
    facts_of: Callable[[str], Facts], docstring: str
):
    facts = facts_of("function")
    telling = with_docstring(facts, docstring)
    detail = "the bug_report repeats the deleted line 'grams = amount * _factor(source)'"
    assert write_instructions(telling) == Reject(
        stage="instruction", reason="gives_code_away", detail=detail
    )


@pytest.mark.parametrize(
    ("text", "line", "is_found"),
    [
        ("Use total = sum(values) / len(values) here", "total = sum(values) / len(values)", True),
        ("total=sum( values )/len(values)", "    total = sum(values) / len(values)", True),
        ("total = sum(values)\n/ len(values)", "total = sum(values) / len(values)", True),
        ("Return total / count", "total = sum(values) / len(values)", False),
        ("It will return None then", "return None", False),
        ("", "total = sum(values) / len(values)", False),
    ],
)
def test_code_is_found_in_a_text_whatever_its_blanks(text: str, line: str, is_found: bool):
    assert find_code(text, ["x", line]) == (line.strip() if is_found else "")


@pytest.mark.parametrize(
    ("path", "kind", "line"),
    [
        ("pantry.convert", "function", "from pantry import convert"),
        ("pantry.shelf.Shelf", "class", "from pantry.shelf import Shelf"),
        ("pantry.shelf.Shelf.find", "method", "from pantry.shelf import Shelf"),
        ("single", "function", "import single"),
    ],
)
def test_the_import_line_fetches_the_symbol(path: str, kind: str, line: str):
    symbol = Symbol(path="a.py", qualname="a", kind=kind, first_line=1, last_line=2)
    assert import_line((path, "other.path"), kind=symbol.kind) == line
