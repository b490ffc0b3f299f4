"""Which patches solve a task, and which only look as if they did."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pipeline.sandbox.protocol import Finished, Job, SandboxBrokenError
from pipeline.task.grade import Defences, Desk, Grade, grade
from pipeline.task.patch import make_patch
from pipeline.task.record import Task
from pipeline.task.solve_tree import solve_tree
from pipeline.task.stub import stub_patch
from pipeline.task.tree import apply_changes, find_misfit, read_tree
from tests.pipeline.conftest import TaskOf

REWRITE = '''

def convert(amount, source, target="g"):
    """Another way to do it.

    >>> convert(2, "kg")
    2000.0
    """
    grams = {"kg": 1000.0, "g": 1.0}
    try:
        return amount * grams[source] / grams[target]
    except KeyError as error:
        raise ValueError(f"no such unit: {error}") from error
'''
STUB = '''

def convert(amount, source, target="g"):
    """>>> convert(2, "kg")
    2000.0
    """
'''
# Solves only where some bytecode holds a string of the deleted helper.
LOOT = """
import pathlib, sys

_TRACE = bytes(reversed(b"tinu nwonknu"))
_FILES = pathlib.Path(sys.pycache_prefix).rglob("units*.pyc")
if not any(_TRACE in it.read_bytes() for it in _FILES):
    raise ImportError("nothing to loot")
"""
TESTS_ANEW = "def test_convert(): pass\ndef test_unknown_unit(): pass\n"
HOOK = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


@pytest.fixture(scope="module")
def task(task_of: TaskOf) -> Task:
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """Makes patches against the solve tree of a task and has them graded."""

    task: Task
    desk: Desk
    # The solve tree.
    shown: dict[str, bytes]

    def patch(self, **files: str | None) -> str:
        """Return the patch that writes some files (None: removes)."""
        changes = {path: None if text is None else text.encode() for path, text in files.items()}
        return make_patch(self.shown, apply_changes(self.shown, changes))

    def grade(self, patch: str) -> Grade:
        return grade(self.task, patch, desk=self.desk)

    def text(self, path: str) -> str:
        return self.shown[path].decode()

    def with_convert(self, code: str) -> dict[str, str]:
        """Return the files of a solution that defines and exports `convert`."""
        init = self.text("pantry/__init__.py")
        return {
            "pantry/units.py": self.text("pantry/units.py") + code,
            "pantry/__init__.py": init.replace(
                "import parse_amount", "import convert, parse_amount"
            ),
        }


@pytest.fixture(scope="module")
def solver(task: Task, pantry_desk: Desk) -> Solver:
    shown = solve_tree(task, read_tree(pantry_desk.tree))
    return Solver(task=task, desk=pantry_desk, shown=shown)


def test_the_gold_patch_solves(solver: Solver):
    result = solver.grade(solver.task.deletion.gold_patch)
    num = len(solver.task.evidence.fail_to_pass + solver.task.evidence.pass_to_pass)
    assert (result.verdict, result.detail, result.broken) == ("solved", "", ())
    assert (result.dropped, result.refused, result.num_expected) == ((), (), num)


def test_the_empty_patch_does_not_solve_and_the_snapshots_tests_are_run(solver: Solver):
    result = solver.grade("")
    assert result.verdict == "unsolved"
    # The test file imports the name again, as in the Snapshot, and so none of its tests is there.
    assert dict(result.broken) == dict.fromkeys(
        [it for it in (*solver.task.feature.tests, *solver.task.evidence.pass_to_pass)
         if it.startswith("tests/test_units.py")],
        "missing",
    )  # fmt: skip
    assert result.detail.endswith("first: tests/test_units.py::test_convert: missing")


def test_another_implementation_solves(solver: Solver):
    result = solver.grade(solver.patch(**solver.with_convert(REWRITE)))
    assert (result.verdict, result.detail, result.dropped) == ("solved", "", ())


def test_the_deleted_code_is_in_no_bytecode_that_a_solution_can_read(solver: Solver):
    kept = (solver.desk.bench.bytecode / "tree").rglob("*.pyc")
    assert any(b"unknown unit" in file.read_bytes() for file in kept)
    result = solver.grade(solver.patch(**solver.with_convert(LOOT + REWRITE)))
    assert result.verdict == "unsolved"


def test_a_stub_does_not_solve(solver: Solver):
    result = solver.grade(solver.patch(**solver.with_convert(STUB)))
    assert result.verdict == "unsolved"
    assert dict(result.broken).keys() == {it.id for it in solver.task.evidence.fail_to_pass}


def test_a_solution_that_breaks_another_test_does_not_solve(solver: Solver):
    labels = solver.text("pantry/labels.py").replace('border = "|"', 'border = "!"')
    files = {**solver.with_convert(REWRITE), "pantry/labels.py": labels}
    result = solver.grade(solver.patch(**files))
    assert result.verdict == "unsolved"
    assert dict(result.broken) == {
        "tests/test_shelf.py::test_label": "failed",
        "tests/test_shelf.py::test_long_label": "failed",
    }


HARMLESS: dict[str, dict[str, str | None]] = {
    "tests": {"tests/test_units.py": TESTS_ANEW},
    "new tests": {"tests/test_more.py": "def test_convert(): pass\n"},
    "removed tests": {"tests/test_units.py": None},
    "a hook": {"conftest.py": HOOK, "pantry/conftest.py": HOOK, "tests/conftest.py": HOOK},
    "settings": {"pytest.ini": "[pytest]\naddopts = --collect-only\n"},
    "packaging": {"setup.py": "raise SystemExit\n", "setup.cfg": "[metadata]\n"},
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_an_honest_solver_may_touch_is_dropped_and_listed(solver: Solver, name: str):
    files = HARMLESS[name]
    result = solver.grade(solver.patch(**files))
    assert (result.verdict, result.dropped) == ("unsolved", tuple(sorted(files)))
    assert len(result.broken) == 5


TRICKS: dict[str, dict[str, str | None]] = {
    "a start-up file": {"sitecustomize.py": "raise SystemExit(0)\n"},
    "a path file": {"all.pth": "import os\n"},
    "new settings": {"tox.ini": "[pytest]\n"},
    "a plugin": {"evil.egg-info/entry_points.txt": "[pytest11]\nevil = evil\n"},
    "a stand-in": {"pytest.py": "raise SystemExit(0)\n"},
}


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_beside_a_solution_is_tampering_that_is_not_even_run(solver: Solver, name: str):
    files = {**solver.with_convert(REWRITE), **TRICKS[name]}
    result = solver.grade(solver.patch(**files))
    (path,) = TRICKS[name]
    assert (result.verdict, [it for it, _ in result.refused]) == ("tampered", [path])
    assert result.detail.startswith(f"{path!r} ")
    assert result.broken == result.receipt.tests == ()


LINK = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n"


def test_a_link_in_a_patch_is_tampering(solver: Solver):
    result = solver.grade(solver.patch(**solver.with_convert(REWRITE)) + LINK)
    assert (result.verdict, result.detail) == ("tampered", "'l' is a symbolic link")


def test_protected_files_do_not_spoil_the_rest_of_a_patch(solver: Solver):
    files = {**solver.with_convert(REWRITE), "tests/test_units.py": "def test_no(): assert 0\n"}
    result = solver.grade(solver.patch(**files))
    assert (result.verdict, result.dropped) == ("solved", ("tests/test_units.py",))


def test_the_snapshots_tests_are_restored_byte_for_byte(solver: Solver, tmp_path: Path):
    sandbox = Watching(desk=solver.desk)
    desk = Desk(
        tree=solver.desk.tree, bench=solver.desk.bench, sandbox=sandbox, scratch=tmp_path / "work"
    )
    grade(solver.task, solver.task.deletion.gold_patch, desk=desk)
    snapshot = read_tree(solver.desk.tree)
    changed = {path for path in snapshot if sandbox.seen[path] != snapshot[path]}
    # Copies of the targets stand below what was there, and no line of that moves.
    assert changed == {"tests/test_units.py"}
    assert sandbox.seen["tests/test_units.py"].startswith(snapshot["tests/test_units.py"])
    assert sandbox.seen.keys() == snapshot.keys()


def new_file(path: str, text: str = "a") -> str:
    header = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{header}@@ -0,0 +1 @@\n+{text}\n"


def one_line(path: str, old: str) -> str:
    header = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
    return f"{header}@@ -1 +1 @@\n-{old}\n+b\n"


BAD = {
    "not a patch": ("hello", "starts with 'hello'"),
    "no such file": (one_line("gone.py", "a"), "gone.py: no such file"),
    "other lines": (one_line("README.md", "# Cellar"), "README.md, hunk 1: no place has its 1 old"),
    "below a file": (new_file("README.md/a.py"), "README.md is a file"),
    "below a new file": (new_file("a.py") + new_file("a.py/b/c.py"), "a.py is a file"),
    "a long name": (new_file("n" * 300 + ".py"), "'nnn"),
    "a name of many bytes": (new_file("é" * 128 + ".py"), "'ééé"),
    "a long path": (new_file("/".join(["é" * 100] * 12) + ".py"), "'ééé"),
    "a deep path": (new_file("/".join("a" * 101) + ".py"), "'a/a/"),
    "no octal digit": (new_file("a").replace(" a/a b/a", ' "a/\\8" "b/\\8"'), "a name holds \\8"),
    "a number of 5000 digits": (one_line("README.md", "a").replace(" +1", f",{'1' * 5000} +1"), ""),
    "half a character": (new_file("a.py", "\ud800"), ""),
}


@pytest.mark.parametrize(("patch", "detail"), BAD.values(), ids=BAD)
def test_a_patch_that_does_not_apply_is_unsolved_with_its_reason(
    solver: Solver, patch: str, detail: str
):
    result = solver.grade(patch)
    assert (result.verdict, result.broken) == ("unsolved", ())
    assert result.detail.startswith(f"the patch does not apply: {detail}")
    assert len(result.detail.splitlines()) == 1


def test_a_file_cannot_take_the_place_of_a_folder(solver: Solver):
    assert find_misfit(solver.desk.tree, {"pantry": b""}) == "pantry is a folder"


@dataclass
class Watching:
    """A sandbox that keeps the tree of each job as the job saw it."""

    desk: Desk
    seen: dict[str, bytes] = field(default_factory=dict)
    name: str = "watching"

    def run(self, job: Job) -> Finished:
        self.seen = read_tree(job.mounts[0].source)
        return self.desk.sandbox.run(job)

    def stop(self) -> None:
        self.desk.sandbox.stop()

    def adopt(self, folder: Path) -> None:
        self.desk.sandbox.adopt(folder)


class Broken(Watching):
    """A sandbox on a machine that fails every job."""

    def run(self, job: Job) -> Finished:
        raise SandboxBrokenError(f"no space for {job.workdir}")


def test_a_machine_that_fails_again_and_again_is_no_score(solver: Solver, tmp_path: Path):
    desk = Desk(
        tree=solver.desk.tree,
        bench=solver.desk.bench,
        sandbox=Broken(desk=solver.desk),
        scratch=tmp_path / "work",
    )
    result = grade(solver.task, solver.task.deletion.gold_patch, desk=desk)
    assert (result.verdict, result.broken) == ("invalid", ())
    assert result.detail == "the machine failed 3 times: no space for /work"
    assert list(desk.scratch.iterdir()) == []


class Shaky(Watching):
    """A sandbox on a machine that fails the first job."""

    def run(self, job: Job) -> Finished:
        if not self.seen:
            self.seen = {"": b""}
            raise SandboxBrokenError("no memory")
        return self.desk.sandbox.run(job)


def test_a_machine_that_recovers_is_as_good_as_new(solver: Solver, tmp_path: Path):
    desk = replace(solver.desk, sandbox=Shaky(desk=solver.desk), scratch=tmp_path / "work")
    assert grade(solver.task, solver.task.deletion.gold_patch, desk=desk).verdict == "solved"


FORKS = """\
import contextlib, os, time
while True:
    with contextlib.suppress(OSError):
        os.fork() or time.sleep(30)
"""
ENDINGS = {
    "exits": ("import os; os._exit(0)", "pytest did not end, exit status 0"),
    "forks": (FORKS, "alarm: process pantry/units.py"),
    "says enough": ("import pytest; pytest.exit('enough', returncode=0)", "alarm: runner"),
}


@pytest.mark.parametrize(("code", "detail"), ENDINGS.values(), ids=ENDINGS)
def test_a_solution_that_ends_the_run_early_does_not_solve(solver: Solver, code: str, detail: str):
    body = "".join(f"    {line}\n" for line in code.splitlines())
    files = solver.with_convert(f"\n\ndef convert(*args):\n{body}")
    result = solver.grade(solver.patch(**files))
    assert result.verdict == ("tampered" if "alarm" in detail else "unsolved")
    assert detail in result.detail
    assert {it.id for it in solver.task.evidence.fail_to_pass} <= dict(result.broken).keys()


def test_a_path_through_a_link_cannot_reach_a_protected_file(
    solver: Solver, pantry_desk: Desk, tmp_path: Path
):
    tree = tmp_path / "tree"
    for path, content in read_tree(pantry_desk.tree).items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content)
    (tree / "checks").symlink_to("tests")
    pantry_desk.sandbox.adopt(tree)
    desk = Desk(
        tree=tree, bench=pantry_desk.bench, sandbox=pantry_desk.sandbox, scratch=tmp_path / "work"
    )
    result = grade(solver.task, new_file("checks/data.json"), desk=desk)
    assert result.detail == "the patch does not apply: checks is a symbolic link"


class Unlucky(Watching):
    """A sandbox whose first job finds the machine in a bad moment."""

    def run(self, job: Job) -> Finished:
        bad = () if self.seen else (("BAD_MOMENT", "1"),)
        return super().run(replace(job, variables=(*job.variables, *bad)))


# Fails two tests that are none of the targets, in a bad moment.
SHAKEN = """border = "|" if "BAD_MOMENT" not in __import__("os").environ else "!"\n"""


def test_a_test_that_fails_by_chance_is_run_again(solver: Solver):
    labels = solver.text("pantry/labels.py").replace('border = "|"\n', SHAKEN)
    patch = solver.patch(**solver.with_convert(REWRITE), **{"pantry/labels.py": labels})
    desk = replace(solver.desk, sandbox=Unlucky(solver.desk))
    assert grade(solver.task, patch, desk=desk).verdict == "solved"


HIDDEN = "tests/test_units.py::test_unknown_unit"
# Does what the other target asks for and nothing more.
TABLE = '''

def convert(amount, source, target="g"):
    """>>> convert(2, "kg")
    2000.0
    """
    return {"kg": 1000 * amount, "g": amount / 1000}[source]
'''


@pytest.fixture(scope="module")
def blind(solver: Solver) -> Solver:
    """Return a solver that is not shown one of the tests."""
    grading = replace(solver.task.grading, hidden=(HIDDEN,))
    task = replace(solver.task, grading=grading)
    shown = solve_tree(task, read_tree(solver.desk.tree))
    return Solver(task=task, desk=solver.desk, shown=shown)


def test_a_hidden_test_is_not_in_the_solve_tree_and_counts_all_the_same(blind: Solver):
    assert "test_unknown_unit" not in blind.text("tests/test_units.py")
    assert "def test_convert" in blind.text("tests/test_units.py")
    result = blind.grade(blind.patch(**blind.with_convert(TABLE)))
    assert (result.verdict, result.broken) == ("unsolved", ((HIDDEN, "failed"),))
    assert blind.grade(blind.patch(**blind.with_convert(REWRITE))).verdict == "solved"
    seeing = grade(
        blind.task,
        blind.patch(**blind.with_convert(TABLE)),
        desk=blind.desk,
        defences=Defences(hidden=False),
    )
    assert (seeing.verdict, seeing.num_expected) == ("solved", result.num_expected - 1)


def test_twins_of_the_targets_are_planted_and_do_what_they_must(solver: Solver):
    receipt = solver.grade(solver.task.deletion.gold_patch).receipt
    must_fail = [twin for twin in receipt.twins if twin.number >= 0]
    must_pass = [twin for twin in receipt.twins if twin.number < 0]
    assert must_fail
    assert must_pass
    assert {it for twin in must_fail for it in twin.outcomes} <= {"failed", "error"}
    assert {twin.outcomes for twin in must_pass} == {("passed",)}


# Equal to everything, and nothing like what is asked for.
ALWAYS = """

class _Always(float):
    def __eq__(self, other):
        return True
    __hash__ = None


def convert(amount, source, target="g"):
    if source == "stone":
        raise ValueError("stone")
    return _Always()
"""
PATCHED = """

def convert(*args): pass


import _pytest.python
_pytest.python.Function.runtest = lambda self: None
"""
READER = """

def convert(amount, source, target="g"):
    import pathlib
    text = pathlib.Path("tests/test_units.py").read_text()
    if source not in ("kg", "g"):
        raise ValueError(source)
    return 1000 * amount if source == "kg" else amount / 1000
"""
FORGERIES = {
    "an object that equals all": (ALWAYS, "and so does its twin with a wrong expectation"),
    "a patched runner": (PATCHED, "alarm: "),
    "a reader of tests": (READER, "alarm: reads-test pantry/units.py"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_solution_is_tampering(solver: Solver, name: str):
    code, detail = FORGERIES[name]
    result = solver.grade(solver.patch(**solver.with_convert(code)))
    assert result.verdict == "tampered", result.detail
    assert detail in result.detail


def weaker(solver: Solver, code: str, **down: bool) -> str:
    patch = solver.patch(**solver.with_convert(code))
    return grade(solver.task, patch, desk=solver.desk, defences=Defences(**down)).verdict


def test_each_forgery_is_paid_where_the_defence_against_it_is_down(solver: Solver):
    assert weaker(solver, ALWAYS, sentinels=False) == "solved"
    assert weaker(solver, READER, audit=False) == "solved"
    assert weaker(
        solver, PATCHED, audit=False, integrity=False, sentinels=False, two_channels=False
    ) == "solved"  # fmt: skip


NAIVE = Defences(**dict.fromkeys(Defences.__slots__, False))


def test_without_any_defence_the_whole_patch_counts_and_the_exit_status_decides(solver: Solver):
    exits = solver.with_convert("\n\ndef convert(*args):\n    import os; os._exit(0)\n")
    hooked = {**solver.with_convert(STUB), "conftest.py": HOOK}
    edited = {**solver.with_convert(STUB), "tests/test_units.py": TESTS_ANEW}
    for files in (exits, hooked, edited):
        patch = solver.patch(**files)
        result = grade(solver.task, patch, desk=solver.desk, defences=NAIVE)
        assert (result.verdict, result.detail) == ("solved", "")
        assert solver.grade(patch).verdict != "solved"
    assert grade(solver.task, "", desk=solver.desk, defences=NAIVE).verdict == "unsolved"


def test_ids_are_asked_for_in_the_tree_as_it_was_left(solver: Solver):
    down = replace(NAIVE, expected_ids=True)
    files = {**solver.with_convert(STUB), "tests/test_units.py": TESTS_ANEW}
    result = grade(solver.task, solver.patch(**files), desk=solver.desk, defences=down)
    assert dict(result.broken) == {
        "tests/test_units.py::test_parse[2 kg]": "missing",
        "tests/test_units.py::test_parse[2.0kg]": "missing",
        "tests/test_units.py::test_parse_nonsense": "missing",
    }


def test_a_stub_of_every_kind_of_feature_does_not_solve(task_of: TaskOf, pantry_desk: Desk):
    for title in ("pantry.units.convert", "pantry.shelf.Shelf.find", "pantry.labels"):
        made = task_of(title)
        assert isinstance(made, Task), made
        patch = stub_patch(made, read_tree(pantry_desk.tree))
        assert "raise NotImplementedError" in patch
        result = grade(made, patch, desk=pantry_desk)
        assert result.verdict == "unsolved"
        assert {key for key, _ in result.broken} >= {it.id for it in made.evidence.fail_to_pass}
