"""What other processes and threads reach counts for the test that starts them."""

from collections.abc import Iterator

import pytest

from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Sandbox, SandboxUnavailableError
from pipeline.task.grade import Desk
from pipeline.task.reached import Lines
from pipeline.task.suite import SuiteRequest, SuiteRun, run_suite
from tests.pipeline.conftest import LIMITS, DeskFor, MakeTree
from tests.pipeline.sandbox.conftest import unavailable

NAMES = (
    *("by_import", "by_command", "by_fork", "by_spawn", "by_pool", "by_thread", "by_killed"),
    *("by_grandchild", "by_script", "by_late", "never"),
)
CORE = "".join(f"def {name}(*_):\n    return 5\n" for name in NAMES) + "by_import()\n"
MAIN = """\
import sys
from pkg import core
if len(sys.argv) > 1:
    getattr(core, sys.argv[1])()
else:
    core.by_command()
"""
TESTS = """
import concurrent.futures, multiprocessing, os, subprocess, sys, threading, time
import pkg

def python(*arguments, **options):
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, timeout=30, **options)

def test_module(): python("-m", "pkg")
def test_empty_environment(): python("-m", "pkg", env={})
def test_isolated(): python("-I", "-c", "from pkg.core import by_command; by_command()")
def test_optimized(): python("-O", "-m", "pkg")
def test_other_folder(tmp_path): python("-m", "pkg", cwd=tmp_path)
def test_import(): python("-c", "import pkg.core")
def test_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from pkg.core import by_script; by_script()")
    python(str(script))
def test_shell(): subprocess.run(f"exec {sys.executable} -m pkg", shell=True, check=True)
def test_grandchild():
    inner = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True)"
    python("-c", inner, "-m", "pkg", "by_grandchild")
def test_fork():
    from pkg import core
    pid = os.fork()
    if pid == 0:
        core.by_fork()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
def spawned():
    from pkg import core
    core.by_spawn()
def test_spawn():
    process = multiprocessing.get_context("spawn").Process(target=spawned)
    process.start()
    process.join()
    assert process.exitcode == 0
def test_pool():
    from pkg import core
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(core.by_pool, range(3))) == [5, 5, 5]
def test_thread():
    from pkg import core
    thread = threading.Thread(target=core.by_thread)
    thread.start()
    thread.join()
def test_killed():
    code = "from pkg import core; core.by_killed(); print(flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as process:
        process.stdout.readline()
        process.kill()
def test_late_import_in_a_fork():
    pid = os.fork()
    if pid == 0:
        import pkg.late
        os._exit(pkg.late.run())
    assert os.waitpid(pid, 0)[1] == 0
def test_nothing(): python("-c", "pass")
def test_is_not_seen(tmp_path):
    code = "import os, sys; print([os.environ, sys.path[1:], sys.argv, __file__])"
    (tmp_path / "it.py").write_text(code)
    command = [sys.executable, "-X", "dev", "-W", "error", str(tmp_path / "it.py")]
    seen = subprocess.run(command, capture_output=True, text=True, check=True)
    assert seen.stderr == ""
    assert "trace" not in seen.stdout.lower()
    assert not [name for name in os.environ if "TRACE" in name]
"""
FILES = {
    "pkg/__init__.py": "",
    "pkg/__main__.py": MAIN,
    "pkg/core.py": CORE,
    "pkg/late.py": "from pkg import core\ndef run():\n    core.by_late()\n    return 0\n",
    "test_a.py": TESTS,
}
REACHED = {
    "test_module": {"by_command"},
    "test_empty_environment": {"by_command"},
    "test_isolated": {"by_command"},
    "test_optimized": {"by_command"},
    "test_other_folder": {"by_command"},
    "test_import": set(),
    "test_script": {"by_script"},
    "test_shell": {"by_command"},
    "test_grandchild": {"by_grandchild"},
    "test_fork": {"by_fork"},
    "test_spawn": {"by_spawn"},
    "test_pool": {"by_pool"},
    "test_thread": {"by_thread"},
    "test_killed": {"by_killed"},
    "test_late_import_in_a_fork": {"by_late"},
    "test_nothing": set(),
    "test_is_not_seen": set(),
}


@pytest.fixture(scope="module", params=["bubblewrap", "docker"])
def sandbox_of_each_kind(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    try:
        opened = open_sandbox(request.param)
    except SandboxUnavailableError as error:
        unavailable(str(error))
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def desk(make_tree: MakeTree, desk_for: DeskFor) -> Desk:
    return desk_for(make_tree(FILES))


@pytest.fixture(scope="module")
def processes(desk: Desk, sandbox_of_each_kind: Sandbox) -> SuiteRun:
    return run_suite(
        sandbox_of_each_kind,
        tree=desk.tree,
        bench=desk.bench,
        request=SuiteRequest(trace=True),
        limits=LIMITS,
    )


@pytest.fixture(scope="module")
def lines(processes: SuiteRun) -> Lines:
    assert processes.trace is not None
    return Lines(processes.trace, ids=tuple(f"test_a.py::{name}" for name in REACHED))


def test_tests_pass_as_if_nobody_watched_them(processes: SuiteRun):
    assert processes.messages == {}
    assert [it.outcome for it in processes.outcomes] == ["passed"] * len(REACHED)


@pytest.mark.parametrize("name", REACHED)
def test_a_test_reaches_what_its_processes_do(lines: Lines, name: str):
    reached = lines.reached_by(f"test_a.py::{name}", "pkg/core.py")
    assert {NAMES[line // 2 - 1] for line in reached} == REACHED[name]


def test_what_a_child_imports_is_import_time(lines: Lines):
    definitions = set(range(1, 2 * len(NAMES), 2))
    assert lines.at_import("pkg/core.py") == definitions | {2, 2 * len(NAMES) + 1}
    assert lines.reached("pkg/core.py").isdisjoint(lines.at_import("pkg/core.py"))
    assert lines.at_import("pkg/late.py") == {1, 2}
    assert lines.tests_of("pkg/late.py", "run") == ("test_a.py::test_late_import_in_a_fork",)


def test_what_python_runs_by_name_is_no_import(lines: Lines):
    branch = MAIN.splitlines().index("    core.by_command()") + 1
    tests = set(lines.tests_at("pkg/__main__.py", branch, branch))
    named = {"module", "empty_environment", "optimized", "other_folder", "shell"}
    assert tests == {f"test_a.py::test_{name}" for name in named}
    assert tests < set(lines.tests_in("pkg/__main__.py"))
