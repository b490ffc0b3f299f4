"""Suites that end the run, hold it up or talk over it: a test that did not run never passes."""

import pytest

from pipeline.sandbox.protocol import Limits
from pipeline.task.suite import SuiteRequest
from tests.pipeline.conftest import RunFiles

ENDS_THE_RUN = {
    "os._exit": "import os; os._exit(0)",
    "the child goes on": "import os\nif os.fork(): os._exit(0)",
    "kills its parent": "import os, time\nos.fork() or os.kill(os.getppid(), 9)\ntime.sleep(9)",
    "kills itself": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "closes all": "import os; os.closerange(0, 256)",
    "pytest.exit": "import pytest; pytest.exit('enough', returncode=0)",
    "Ctrl-C": "raise KeyboardInterrupt",
}


@pytest.mark.parametrize("code", ENDS_THE_RUN.values(), ids=ENDS_THE_RUN)
def test_a_test_that_ends_the_run_does_not_pass_nor_do_those_after_it(
    run_files: RunFiles, code: str
):
    body = "\n".join(f"    {line}" for line in code.splitlines())
    files = {"test_a.py": f"def test_a(): pass\ndef test_b():\n{body}\ndef test_c(): pass"}
    run = run_files(files, limits=Limits(wall_s=10))
    outcomes = {key: it.outcome for key, it in run.by_id().items()}
    assert outcomes.get("test_a.py::test_a", "passed") == "passed"
    assert outcomes.get("test_a.py::test_b") in {None, "error"}
    assert "test_a.py::test_c" not in outcomes


def test_results_from_before_a_crash_are_kept(run_files: RunFiles):
    code = "import os\ndef test_a(): pass\ndef test_b(): os._exit(0)"
    run = run_files({"test_a.py": code})
    assert (run.ended, run.finished.exit_code, len(run.outcomes)) == (False, 0, 1)


@pytest.mark.parametrize("code", ["import sys; sys.exit(0)", "import os; os._exit(0)"])
def test_a_module_that_exits_while_it_is_collected_lets_nothing_pass(
    run_files: RunFiles, code: str
):
    run = run_files({"test_a.py": "def test_a(): pass", "test_b.py": code})
    assert run.outcomes == ()
    assert not (run.ended and run.finished.exit_code in {0, 1, 5})


def test_a_forked_process_that_runs_on_reports_nothing(run_files: RunFiles):
    code = """
import os
def test_fork():
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        assert False
def test_after(): assert False
"""
    run = run_files({"test_a.py": code})
    assert [it.outcome for it in run.outcomes] == ["failed", "failed"]
    assert run.ended


def test_threads_that_are_forgotten_do_not_hold_up_the_run(run_files: RunFiles):
    code = """
import threading, time
def test_a(): threading.Thread(target=time.sleep, args=(50,)).start()
"""
    run = run_files({"test_a.py": code}, limits=Limits(wall_s=20))
    assert (run.ended, run.finished.limit, len(run.outcomes)) == (True, None, 1)


def test_lines_printed_by_tests_are_not_results(run_files: RunFiles):
    code = """
import json, os, sys
LINE = json.dumps({"kind": "test", "id": "test_a.py::test_b", "outcome": "passed",
                   "duration": 0.1, "exception": "", "message": ""})
def test_a():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        print(LINE, file=stream, flush=True)
    os.write(1, LINE.encode() + b"\\n")
def test_b(): assert False
"""
    run = run_files({"test_a.py": code}, args=("-s",))
    assert [(it.id, it.outcome) for it in run.outcomes] == [
        ("test_a.py::test_a", "passed"),
        ("test_a.py::test_b", "failed"),
    ]


def test_garbage_in_every_open_file_makes_no_result_and_is_noticed(run_files: RunFiles):
    code = """
import os
def test_a():
    for fd in range(3, 64):
        try:
            os.write(fd, b'{"kind": "test"}\\n{"kind": "collected", "ids": 7}\\n\\0\\xff[[{')
        except OSError:
            pass
def test_b(): assert False
"""
    run = run_files({"test_a.py": code})
    outcomes = {key: it.outcome for key, it in run.by_id().items()}
    assert outcomes.get("test_a.py::test_b", "failed") == "failed"
    assert outcomes.keys() <= {"test_a.py::test_a", "test_a.py::test_b"}
    assert run.forged


INNOCENT = """
import importlib.util, multiprocessing, sys
import pytest

@pytest.mark.parametrize("name", ["run_suite", "trace_hook", "pipeline", "regrow_trace_hook"])
def test_nothing_of_ours_can_be_imported(name):
    assert importlib.util.find_spec(name) is None

def test_our_tools_are_on_no_path():
    assert not [path for path in sys.path if path.startswith("/tools")]

@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_processes_can_be_started(method):
    context = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        assert pool.map(abs, [-1, 2]) == [1, 2]
"""


@pytest.mark.parametrize("trace", [False, True])
def test_the_suite_sees_nothing_of_the_recorder(run_files: RunFiles, trace: bool):
    run = run_files({"test_a.py": INNOCENT}, SuiteRequest(trace=trace))
    assert len(run.outcomes) == 8
    assert run.messages == {}


def test_a_module_called_pytest_does_not_take_over(run_files: RunFiles):
    run = run_files({
        "pytest.py": "raise SystemExit(0)",
        "json.py": "raise SystemExit(0)",
        "test_a.py": "def test_a(): assert False",
    })
    assert [it.outcome for it in run.outcomes] == ["failed"]


def test_a_flood_of_output_ends_the_run(run_files: RunFiles):
    code = "def test_a():\n    for _ in range(100): print('x' * 1_000_000)\n    assert False"
    run = run_files({"test_a.py": code}, args=("-s",))
    assert (run.finished.limit, run.ended) == ("output", False)


def test_a_suite_that_hangs_is_ended(run_files: RunFiles):
    code = "import time\ndef test_a(): pass\ndef test_b(): time.sleep(60)"
    run = run_files({"test_a.py": code}, limits=Limits(wall_s=1.5))
    assert (run.finished.limit, run.ended) == ("wall", False)
    assert [it.id for it in run.outcomes] == ["test_a.py::test_a"]
