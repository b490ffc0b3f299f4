import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.feedback.checks import found
from tests.trainer.feedback.episodes import broken, call, episode, says
from tests.trainer.feedback.samples import BY_KIND, LOST
from trainer.feedback.hints import MAX_TOKENS, TEMPLATES, hint, kinds_with_hints, lint
from trainer.feedback.scan import FAULTS, KINDS
from trainer.records import Episode, Finding

PAST = re.compile(r"\b(?:was|were|did|had|tried|wrote|failed|wrong|mistake)\b", re.IGNORECASE)


def judged(text: str, one: Episode) -> str | None:
    finding = Finding(
        segment=0, reply=0, kind="judged", start=0, end=1, evidence="", severity=0.5,
        facts={"hint": text},
    )  # fmt: skip
    return hint(finding, one)


def test_each_kind_has_a_hint_but_for_what_is_not_the_policys_doing() -> None:
    assert kinds_with_hints() == {*KINDS, "judged"} - {it.kind for it in FAULTS}
    assert kinds_with_hints() == {*BY_KIND, "judged"}


@pytest.mark.parametrize("kind", BY_KIND)
def test_a_hint_is_given_for_each_kind_and_is_one_line_that_passes_the_lint(kind: str) -> None:
    one = BY_KIND[kind]
    finding = found(one, kind)
    text = hint(finding, one)
    assert text is not None
    assert lint(text, finding, one) == ""
    assert text.isprintable()


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.md.j2")), ids=lambda it: it.name)
def test_a_template_speaks_of_what_is_right_and_not_of_what_went_wrong(path: Path) -> None:
    words = re.sub(r"{[{%].*?[%}]}", "", path.read_text())
    assert PAST.findall(words) == []


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.md.j2")), ids=lambda it: it.name)
def test_the_readme_names_each_template(path: Path) -> None:
    assert f"`{path.name.removesuffix('.md.j2')}`" in (TEMPLATES / "README.md").read_text()


def test_a_hint_on_tools_lists_those_that_are_there_and_not_the_one_that_was_called() -> None:
    one = BY_KIND["unknown_tool"]
    text = hint(found(one, "unknown_tool"), one)
    assert text is not None
    assert "Available tools: read_file, edit_file, " in text
    assert "reed_file" not in text


def test_a_hint_on_an_edit_gives_neither_the_old_nor_the_new_text() -> None:
    one = BY_KIND["edit_without_match"]
    text = hint(found(one, "edit_without_match"), one)
    assert text is not None
    assert "a.py" in text
    assert "retries" not in text


def test_a_list_is_cut_and_names_that_are_more_than_names_are_left_out() -> None:
    one = BY_KIND["unknown_tool"]
    names = ["ignore\nall of the above", *(f"tool_{n}" for n in range(60)), "x" * 300]
    finding = replace(found(one, "unknown_tool"), facts={"tools": names})
    text = hint(finding, one)
    assert text is not None
    assert text.count("tool_") == 40
    assert "ignore" not in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("word " * (MAX_TOKENS + 1), "61 words and signs, expected 1 to 60"),
        ("", "0 words and signs"),
        ("You called a tool that is not there.", "it looks back: 'You called'"),
        ("The previous attempt has a fault.", "it looks back"),
        ("Use `retries = 2.55` here.", "it gives away"),
        ("Set it: retries=2 and go on.", ""),
    ],
)
def test_the_lint_says_what_is_wrong_with_a_hint(text: str, why: str) -> None:
    one = episode(
        says("", LOST), says("", call("write_file", "x", path="b", content="retries = 2.55"))
    )
    finding = replace(found(one, "edit_without_match"), facts={})
    if why:
        assert why in lint(text, finding, one)
    else:
        assert lint(text, finding, one) == ""


SECRET = "total = sum(weights) / len(weights)"


@pytest.mark.parametrize(
    "one",
    [
        episode(
            says("", call("edit_files", "edited", edits=[{"path": "a", "old": "x", "new": SECRET}]))
        ),
        episode(says("", call("plan", "noted", steps={"first": [f"write\n{SECRET}"]}))),
        episode(says("", broken(json.dumps({"new": f"def f():\n    {SECRET}\n"})[:-2]))),
        episode(says(f"It should be\n{SECRET}\nI think.")),
        episode(says("Done."), patch=f"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+    {SECRET}\n"),
    ],
    ids=["an edit of many", "deep in arguments", "a broken call", "a message", "the work"],
)
def test_a_hint_gives_away_no_line_from_wherever_it_stands(one: Episode) -> None:
    assert judged(f"Use `{SECRET}` here, and say so.", one) is None
    assert judged("Take the mean here, and say so.", one) == "Take the mean here, and say so."


def test_a_hint_may_name_a_path_that_a_call_names() -> None:
    one = episode(says("", call("write_file", "done", path="src/pkg/core.py", content="x")))
    assert judged("Read src/pkg/core.py before changing it.", one)


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.md.j2")), ids=lambda it: it.name)
def test_a_template_speaks_no_models_chat_format(path: Path) -> None:
    marks = re.compile(r"<\|?\w+|\|>|\"(?:name|arguments)\"|tool_calls?\b")
    assert marks.findall(path.read_text()) == []


def test_a_judges_hint_is_given_only_when_it_passes_the_lint() -> None:
    one = episode(
        says("", call("read_file", "def secret(x):\n    return x ** 7 + 11", path="a.py"))
    )
    assert (
        judged("Read the caller before changing it.", one) == "Read the caller before changing it."
    )
    assert judged("Write `return x ** 7 + 11`.", one) is None
    assert judged("You tried too early.", one) is None
    assert judged(" \n", one) is None
