"""One tree after another in one folder: nothing of the last one is left."""

from pipeline.task.changed import changing_suite
from pipeline.task.grade import outcomes_of
from pipeline.task.suite import SuiteRequest, run_suite
from pipeline.task.tree import Changes, read_tree
from tests.pipeline.conftest import LIMITS, DeskFor, MakeTree

FILES = {
    "lib.py": "VALUE = 1\n",
    "data.txt": "1",
    "tests/test_lib.py": """\
from pathlib import Path
import lib

def test_value():
    assert lib.VALUE == 1

def test_data():
    assert Path("data.txt").read_text() == "1"

def test_more():
    assert not Path("more.txt").exists()
""",
}
NAMES = ("value", "data", "more")
CHANGES: tuple[tuple[Changes, str], ...] = (
    ({"lib.py": b"VALUE = 2\n"}, "value"),
    ({"data.txt": None}, "data"),
    ({"more.txt": b""}, "more"),
    ({"lib.py": b"VALUE = 3\n"}, "value"),
    ({}, ""),
)


def test_each_run_sees_its_own_changes_and_leaves_none(make_tree: MakeTree, desk_for: DeskFor):
    desk = desk_for(make_tree(FILES))
    before = read_tree(desk.tree)
    ids = tuple(f"tests/test_lib.py::test_{name}" for name in NAMES)
    run_suite(
        desk.sandbox,
        tree=desk.tree,
        bench=desk.bench,
        request=SuiteRequest(keep_bytecode=True),
        limits=LIMITS,
    )
    with changing_suite(desk) as run_changed:
        for changes, broken in CHANGES:
            outcomes = outcomes_of(run_changed(changes, SuiteRequest()), ids)
            assert [name for name, it in zip(NAMES, outcomes.values(), strict=True)
                    if it != "passed"] == ([broken] if broken else [])  # fmt: skip
    assert read_tree(desk.tree) == before
    assert list(desk.scratch.iterdir()) == []
