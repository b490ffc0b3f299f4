"""Suites in warm workers: that each test does there what it does in a new sandbox."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from pipeline.sandbox.protocol import Limits, Sandbox
from pipeline.sandbox.warm import Nursery, Warm
from pipeline.task.grade import Desk
from pipeline.task.suite import SuiteRequest, SuiteRun, run_suite
from tests.pipeline import pantry
from tests.pipeline.conftest import DeskFor, MakeTree

LIMITS = Limits(wall_s=60, cpu_s=60)
REQUESTS = {
    "as found": SuiteRequest(),
    "pinned": SuiteRequest(plugins=()),
    "guarded": SuiteRequest(plugins=(), guard=True),
    "shuffled": SuiteRequest(shuffle=3, hash_seed=5),
    "collected": SuiteRequest(collect_only=True),
}
SUITES: dict[str, Mapping[str, str]] = {
    "pantry": pantry.FILES,
    # Each looks at something that a process which stays could hand on.
    "state": {
        "lib/__init__.py": "SEEN = []\n",
        "tests/conftest.py": """
import lib, pytest
lib.SEEN.append("conftest")

@pytest.fixture(scope="session", autouse=True)
def once():
    lib.SEEN.append("fixture")
    yield
""",
        "tests/test_state.py": """
import gc, logging, os, pathlib, random, subprocess, sys, tempfile, threading, warnings, weakref
import lib

def test_state_of_the_library():
    assert lib.SEEN == ["conftest", "fixture"]

def test_nobody_was_here(tmp_path):
    folders = ("/tmp", "/dev/shm", "/work", "/home/regrow")
    marks = [pathlib.Path(folder, "mark") for folder in folders]
    assert not any(mark.exists() for mark in marks)
    for mark in marks:
        mark.touch()
    assert "mark" not in os.environ
    os.environ["mark"] = "set"
    assert not hasattr(sys, "mark")
    sys.mark = True
    assert tmp_path.name == "test_nobody_was_here0"
    assert tmp_path.parent.name == "pytest-0"

def test_garbage_is_collected():
    class Node: pass
    node = Node()
    node.itself = node
    seen = weakref.ref(node)
    del node
    gc.collect()
    assert seen() is None

def test_own_code_is_rewritten():
    try:
        assert [1, 2] == [1, 3]
    except AssertionError as error:
        assert "At index 1 diff: 2 != 3" in str(error)

def test_output(capfd):
    os.write(1, b"low")
    print("high", flush=True)
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    assert capfd.readouterr().out == "lowhigh\\nchild\\n"

def test_spawned_process():
    import multiprocessing
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(abs, [-1]) == [1]

def test_log(caplog):
    logging.getLogger("x").warning("said")
    assert caplog.messages == ["said"]

def test_warnings_show_once_more():
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert len(caught) == 1

def test_main_thread():
    assert threading.current_thread() is threading.main_thread()
    assert threading.active_count() == 1

def test_luck():
    assert random.random() != 0.5 and tempfile.gettempdir() == "/tmp"

def test_failing():
    assert os.getpid() == -1, "a message"

def test_input():
    assert sys.stdin is not None
    try:
        input()
    except OSError as error:
        assert "reading from stdin" in str(error)
""",
    },
    "ends early": {
        "test_a.py": "def test_passes(): pass\ndef test_exits():\n    import os; os._exit(0)\n",
    },
    "does not collect": {"test_a.py": "import missing\n", "test_b.py": "def test_b(): pass\n"},
}


@pytest.fixture(scope="module")
def warm(sandbox: Nursery) -> Iterator[Warm]:
    with Warm(sandbox) as opened:
        yield opened


@pytest.fixture(scope="module")
def desk_of(make_tree: MakeTree, desk_for: DeskFor) -> Callable[[str], Desk]:
    return lambda name: desk_for(make_tree(SUITES[name]))


def verdicts(sandbox: Sandbox, desk: Desk, request: SuiteRequest) -> dict[str, object]:
    """Return all that a run says of a suite, but for how long it took."""
    run: SuiteRun = run_suite(
        sandbox, tree=desk.tree, bench=desk.bench, request=request, limits=LIMITS
    )
    return {
        "outcomes": [(it.id, it.outcome, it.exception) for it in run.outcomes],
        "collected": run.collected,
        "errors": run.collect_errors,
        "symptoms": {it.id: run.symptom(it.id) for it in run.outcomes},
        "ended": run.ended,
        "plugins": run.plugins,
        "alarms": run.alarms,
        "second": run.second,
        "forged": run.forged,
        "exit": (run.finished.exit_code, run.finished.limit),
    }


@pytest.mark.parametrize("name", SUITES)
@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_suite_does_in_a_worker_what_it_does_in_a_new_sandbox(
    sandbox: Nursery,
    warm: Warm,
    desk_of: Callable[[str], Desk],
    name: str,
    request_name: str,
):
    desk, request = desk_of(name), REQUESTS[request_name]
    fresh = verdicts(sandbox, desk, request)
    for _ in range(2):
        assert verdicts(warm, desk, request) == fresh
    assert max(worker.num_runs for worker in warm._idle) >= 2


def test_a_suite_that_looks_for_traces_of_others_finds_none(
    warm: Warm, desk_of: Callable[[str], Desk]
):
    desk = desk_of("state")
    for _ in range(3):
        found = verdicts(warm, desk, SuiteRequest())["outcomes"]
        assert isinstance(found, list)
        others = [(key, outcome) for key, outcome, _ in found if outcome != "passed"]
        assert others == [("tests/test_state.py::test_failing", "failed")]
