from pathlib import PurePosixPath

import pytest

from pipeline.leaks.match import Matcher
from pipeline.leaks.prints import (
    SymbolPrints,
    deletion_prints,
    snapshot_prints,
    symbols_prints,
)
from pipeline.leaks.symbol import KINDS, keys_of
from pipeline.task.patch import make_patch, num_removed_lines
from pipeline.task.record import Deletion
from tests.pipeline import pantry

FILES = {path: text.encode() for path, text in pantry.FILES.items()}


def deleted(after: dict[str, bytes | None]) -> dict[str, SymbolPrints]:
    """Return what a deletion removes from the pantry, by symbol; None stands for a deleted file."""
    tree = {path: content for path, content in (FILES | after).items() if content is not None}
    patch = make_patch(FILES, tree)
    deletion = Deletion(
        patch=patch,
        gold_patch=make_patch(tree, FILES),
        paths=tuple(after),
        seams=(),
        num_removed_lines=num_removed_lines(patch),
    )
    return {it.symbol: it for it in deletion_prints(FILES, deletion)}


def without(path: str, start: str, end: str = "") -> dict[str, bytes | None]:
    """Return a file without the text from a start up to an end."""
    before, _, rest = FILES[path].decode().partition(start)
    kept = rest.partition(end)[2] if end else ""
    return {path: (before + (end + kept if end else "")).encode()}


def test_a_function_goes_with_its_lines_signature_docstring_and_name() -> None:
    gone = deleted(without("pantry/units.py", "def convert", "def parse_amount"))
    assert list(gone) == ["pantry/units.py:convert"]
    prints = gone["pantry/units.py:convert"]
    assert prints.parameters == ("amount", "source", "target")
    assert len(prints.lines) == 2
    assert prints.signatures
    assert prints.phrases
    assert prints.codes
    assert prints.trees


def test_a_class_goes_method_by_method() -> None:
    gone = deleted(without("pantry/labels.py", "class Label"))
    names = {"Label", "Label.__init__", "Label.room", "Label.render", "Label.__len__"}
    assert {it.partition(":")[2] for it in gone} == names


def test_a_module_goes_with_all_its_symbols() -> None:
    gone = deleted({"pantry/words.py": None})
    assert set(gone) == {"pantry/words.py:", "pantry/words.py:slug"}
    assert gone["pantry/words.py:"].phrases


def test_a_subpackage_goes_with_all_its_modules() -> None:
    gone = deleted(dict.fromkeys([it for it in FILES if it.startswith("pantry/")], None))
    assert {"pantry/shelf.py:Shelf.find", "pantry/units.py:convert"} <= set(gone)


def test_of_an_option_only_what_it_alone_brings_counts() -> None:
    old, text = "    def heaviest(self, count=1):", FILES["pantry/shelf.py"].decode()
    changed = text.replace(old, "    def heaviest(self):")
    changed = changed.replace("        chosen = ranked[:count]\n", "        chosen = ranked[:1]\n")
    gone = deleted({"pantry/shelf.py": changed.encode()})
    assert list(gone) == ["pantry/shelf.py:Shelf.heaviest"]
    prints = gone["pantry/shelf.py:Shelf.heaviest"]
    whole = next(it for it in symbols_prints("pantry/shelf.py", text.encode()) if
                 it.symbol == prints.symbol)  # fmt: skip
    assert set(prints.lines) < set(whole.lines)
    assert not prints.names
    assert set(prints.signatures) == set(whole.signatures)


def test_of_a_branch_that_goes_the_lines_of_the_branch_count() -> None:
    gone = deleted(without("pantry/units.py", "    if match is None", "    return float"))
    prints = gone["pantry/units.py:parse_amount"]
    assert not prints.names
    assert not prints.signatures
    assert prints.trees


def test_a_constant_goes_with_its_texts() -> None:
    table = '_ERRORS = {\n    "zero": "a shelf needs some room for things",\n}\n'
    prints = symbols_prints("a.py", table.encode())
    assert [it.symbol for it in prints] == ["a.py:_ERRORS", "a.py:"]
    assert prints[0].literals


def test_exports_are_no_secret() -> None:
    prints = symbols_prints("a.py", b'__all__ = ["rarely_seen_name", "another_rare_name"]\n')
    assert not any(keys_of(it, kind) for it in prints for kind in KINDS)


def test_tests_and_their_configuration_stay_with_the_solver() -> None:
    changed = {"pytest.ini": b"[pytest]\n", "README.md": b"# Pantry\n"}
    assert {PurePosixPath(it.partition(":")[0]).name for it in deleted(changed)} <= {"README.md"}


@pytest.mark.parametrize("path", ["pkg/Fast.java", "pkg/fast.js", "pkg/fast.c", "pkg/fast.toml"])
def test_other_languages_have_lines_and_runs(path: str) -> None:
    text = b"  double weighted_mean_of(double[] values, double[] weights_given) { // here\n" * 2
    (prints,) = symbols_prints(path, text)
    assert prints.lines
    assert prints.grams


def test_prose_is_told_from_code() -> None:
    (prints,) = symbols_prints("docs/use.rst", b"Shelves sag under lentils of dubious provenance.")
    assert prints.phrases
    assert not prints.lines


def test_what_python_cannot_read_is_text() -> None:
    (prints,) = symbols_prints("a.py", b"print 'quixotic lentils', wobbling_shelf\n")
    assert prints.lines
    deep = b"rarely_named = " + b"+".join([b"lentil_count"] * 5000)
    assert [it.symbol for it in symbols_prints("b.py", deep)] == ["b.py:"]


def test_what_a_deletion_removes_is_among_the_keys_of_the_snapshot() -> None:
    gone = deleted({"pantry/units.py": None, **without("pantry/shelf.py", "    def heaviest")})
    assert gone
    alone, together = Matcher(gone.values()), Matcher(snapshot_prints(FILES))
    text = FILES["pantry/units.py"] + FILES["pantry/shelf.py"]
    assert alone.match(text, "text")
    assert alone.match(text, "text") <= together.match(text, "text")
