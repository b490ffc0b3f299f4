"""Which patches solve a task, and which only look as if they did."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipeline.sandbox.protocol import Finished, Job, SandboxBrokenError
from pipeline.task.grade import Desk, Grade, grade
from pipeline.task.patch import apply_patch, make_patch
from pipeline.task.record import Task
from pipeline.task.tree import apply_changes, read_tree
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
if not any(_TRACE in it.read_bytes() for it in pathlib.Path(sys.pycache_prefix).rglob("*.pyc")):
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
    """Makes patches against the ablated tree of a task and has them graded."""

    task: Task
    desk: Desk
    ablated: dict[str, bytes]

    def patch(self, **files: str | None) -> str:
        """Return the patch that writes some files (None: removes)."""
        changes = {path: None if text is None else text.encode() for path, text in files.items()}
        return make_patch(self.ablated, apply_changes(self.ablated, changes))

    def grade(self, patch: str) -> Grade:
        return grade(self.task, patch, desk=self.desk)

    def text(self, path: str) -> str:
        return self.ablated[path].decode()

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
    snapshot = read_tree(pantry_desk.tree)
    ablated = apply_changes(snapshot, apply_patch(snapshot, task.deletion.patch))
    return Solver(task=task, desk=pantry_desk, ablated=ablated)


def test_the_gold_patch_solves(solver: Solver):
    result = solver.grade(solver.task.deletion.gold_patch)
    num = len(solver.task.evidence.fail_to_pass + solver.task.evidence.pass_to_pass)
    assert result == Grade(verdict="solved", detail="", broken=(), dropped=(), num_expected=num)


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


TAMPERING: dict[str, dict[str, str | None]] = {
    "tests": {"tests/test_units.py": TESTS_ANEW},
    "new tests": {"tests/test_more.py": "def test_convert(): pass\n"},
    "removed tests": {"tests/test_units.py": None},
    "a hook": {"conftest.py": HOOK, "pantry/conftest.py": HOOK, "tests/conftest.py": HOOK},
    "a setting": {"pytest.ini": "[pytest]\naddopts = --collect-only\n"},
    "other settings": {"pytest.toml": "", "tox.ini": "[pytest]\n", "setup.cfg": "[tool:pytest]\n"},
    "a start-up file": {"sitecustomize.py": "raise SystemExit(0)\n", "all.pth": "import os\n"},
}


@pytest.mark.parametrize("name", TAMPERING)
def test_protected_files_of_a_patch_are_dropped_and_listed(solver: Solver, name: str):
    files = TAMPERING[name]
    result = solver.grade(solver.patch(**files))
    assert (result.verdict, result.dropped) == ("unsolved", tuple(sorted(files)))
    assert len(result.broken) == 5


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
    assert sandbox.seen == read_tree(solver.desk.tree)


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
    "out of the tree": (new_file("../out.py"), "path '../out.py'"),
    "below a file": (new_file("README.md/a.py"), "README.md is a file"),
    "in place of a folder": (new_file("pantry"), "pantry is a folder"),
    "below a new file": (new_file("a") + new_file("a/b/c"), "a is a file"),
    "a long name": (new_file("n" * 300), "'nnn"),
    "a name of many bytes": (new_file("é" * 128), "'ééé"),
    "a long path": (new_file("/".join(["é" * 100] * 12)), "'ééé"),
    "a deep path": (new_file("/".join("a" * 101)), "'a/a/"),
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


def test_a_machine_that_fails_is_no_grade(solver: Solver, tmp_path: Path):
    desk = Desk(
        tree=solver.desk.tree,
        bench=solver.desk.bench,
        sandbox=Broken(desk=solver.desk),
        scratch=tmp_path / "work",
    )
    with pytest.raises(SandboxBrokenError, match="no space"):
        grade(solver.task, solver.task.deletion.gold_patch, desk=desk)
    assert list(desk.scratch.iterdir()) == []


FORKS = """\
import contextlib, os, time
while True:
    with contextlib.suppress(OSError):
        os.fork() or time.sleep(30)
"""
ENDINGS = {
    "exits": ("import os; os._exit(0)", "pytest did not end, exit status 0"),
    "forks": (FORKS, "the suite went over its limit of processes"),
    "says enough": ("import pytest; pytest.exit('enough', returncode=0)", "do not pass, first: "),
}


@pytest.mark.parametrize(("code", "detail"), ENDINGS.values(), ids=ENDINGS)
def test_a_solution_that_ends_the_run_early_does_not_solve(solver: Solver, code: str, detail: str):
    body = "".join(f"    {line}\n" for line in code.splitlines())
    files = solver.with_convert(f"\n\ndef convert(*args):\n{body}")
    result = solver.grade(solver.patch(**files))
    assert result.verdict == "unsolved"
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
