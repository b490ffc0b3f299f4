"""How jobs start, talk and end; that nothing of them stays."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.sandbox.protocol import (
    Job,
    Limits,
    Mount,
    Sandbox,
    SandboxBrokenError,
    SandboxStoppedError,
)

MakeJob = Callable[..., Job]

ROOT = Path(__file__).parents[3]
DRIVER = """
import sys
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Job
marker = sys.stdin.readline().strip()
script = "setsid sh -c 'sleep 61; : " + marker + "' & sleep 61; : " + marker
open_sandbox(sys.argv[1]).run(Job(command=("/bin/sh", "-c", script)))
"""


def processes_with(marker: str) -> list[int]:
    """Return the pids of every process on the host with the marker among its arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def wait_until(num_processes: int, marker: str, *, within_s: float) -> bool:
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s:
        if len(processes_with(marker)) == num_processes:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("script", "exit_code"),
    [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 137", 137),
        ("kill -9 $$", -9),
        ("kill -TERM $$", -15),
        ("kill -s SEGV $$", -11),
        ("exec /nonexistent", 127),
        ("exec /etc/passwd", 126),
    ],
)
def test_the_exit_status_is_exact(sandbox: Sandbox, script: str, exit_code: int):
    finished = sandbox.run(Job(command=("/bin/sh", "-c", script)))
    assert (finished.exit_code, finished.limit) == (exit_code, None)


@pytest.mark.parametrize(
    ("command", "exit_code"), [("no-such-program", 127), ("/etc/hosts", 126), ("/usr", 126)]
)
def test_a_command_that_cannot_be_executed_fails_as_in_a_shell(
    sandbox: Sandbox, command: str, exit_code: int
):
    finished = sandbox.run(Job(command=(command,)))
    assert finished.exit_code == exit_code
    assert finished.output.startswith(command.encode() + b": ")


def test_signals_have_their_usual_effect(sandbox: Sandbox):
    # As under nohup.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        finished = sandbox.run(Job(command=("/bin/sh", "-c", "grep SigIgn /proc/self/status")))
    finally:
        signal.signal(signal.SIGHUP, before)
    # The C library keeps 32 and 33 to itself, and some versions of make hand them down ignored.
    reserved = 0b11 << 31
    assert int(finished.output.split()[1], 16) & ~reserved == 0


def test_killing_everything_in_sight_ends_only_the_job(sandbox: Sandbox, python: MakeJob):
    code = "import os, time\nif os.fork() == 0: os.kill(-1, 9)\ntime.sleep(60)"
    finished = sandbox.run(python(code))
    assert (finished.exit_code, finished.limit) == (-9, None)


def test_the_launcher_is_deaf_to_the_job(sandbox: Sandbox):
    script = "for name in INT TERM HUP SEGV STOP KILL; do kill -s $name 1; done; exit 4"
    finished = sandbox.run(Job(command=("/bin/sh", "-c", script)))
    assert (finished.exit_code, finished.limit) == (4, None)


def test_a_job_ends_with_its_command_and_leaves_no_process(sandbox: Sandbox):
    marker = f"left-behind-{os.getpid()}"
    script = f"setsid sh -c 'sleep 60; : {marker}' > /dev/null & exit 0"
    finished = sandbox.run(Job(command=("/bin/sh", "-c", script)))
    assert (finished.exit_code, finished.limit) == (0, None)
    assert processes_with(marker) == []


def test_arguments_and_variables_arrive_as_they_are(sandbox: Sandbox):
    texts = (
        "",
        "two words",
        "ein Straßenfest\n\tzweite Zeile",
        "'\"$HOME`*\\",
        "\udcff\udc80",
        "-x",
    )
    code = (
        "import os, sys; os.write(1, os.fsencode('\\0'.join([*sys.argv[1:], os.environ['TEXT']])))"
    )
    for text in texts:
        finished = sandbox.run(
            Job(
                command=(f"{sys.base_prefix}/bin/python3", "-c", code, *texts),
                variables=(("TEXT", text), ("LC_ALL", "C")),
            )
        )
        assert finished.output == b"\0".join(map(os.fsencode, (*texts, text)))


def test_a_variable_cannot_make_the_launcher_run_something_else(sandbox: Sandbox, tmp_path: Path):
    (tmp_path / "os.py").write_text("raise SystemExit('hijacked')")
    sandbox.adopt(tmp_path)
    job = Job(
        command=("/bin/sh", "-c", "echo $PYTHONPATH"),
        mounts=(Mount(source=tmp_path, target="/evil"),),
        workdir="/evil",
        variables=(("PYTHONPATH", "/evil"), ("LD_PRELOAD", "/evil/os.py"), ("PYTHONHOME", "/evil")),
    )
    assert sandbox.run(job).output.splitlines()[-1] == b"/evil"


def test_input_output_and_results_flow_at_the_same_time(sandbox: Sandbox, python: MakeJob):
    code = """
import os, sys
data = sys.stdin.buffer.read()
with open(int(os.environ["REGROW_RESULTS_FD"]), "wb") as results:
    for at in range(0, len(data), 1000):
        results.write(data[at:at + 1000][::-1])
        sys.stdout.buffer.write(data[at:at + 1000])
"""
    data = os.urandom(1_000_000)
    finished = sandbox.run(python(code, stdin=data))
    assert finished.output == data
    assert sorted(finished.results) == sorted(data)


def test_input_that_is_never_read_holds_up_nothing(sandbox: Sandbox, python: MakeJob):
    code = "import os; [os.write(3, b'x' * 1000) for _ in range(300)]; print('done')"
    finished = sandbox.run(python(code, stdin=bytes(1_000_000)))
    assert (finished.output, len(finished.results)) == (b"done\n", 300_000)


def test_output_keeps_the_order_of_arrival(sandbox: Sandbox):
    job = Job(command=("/bin/sh", "-c", "echo a; echo b >&2; echo c; echo d >&2"))
    assert sandbox.run(job).output == b"a\nb\nc\nd\n"


def test_results_of_a_job_that_was_killed_are_kept(sandbox: Sandbox, python: MakeJob):
    code = "import os, time; print('out', flush=True); os.write(3, b'result'); time.sleep(60)"
    finished = sandbox.run(python(code, wall_s=0.5))
    assert (finished.limit, finished.output, finished.results) == ("wall", b"out\n", b"result")


def test_jobs_run_side_by_side(sandbox: Sandbox):
    script = "date +%s.%N; sleep 1; echo {} >&3; date +%s.%N"
    jobs = [Job(command=("/bin/sh", "-c", script.format(number))) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(sandbox.run, jobs))
    assert [int(answer.results) for answer in answers] == list(range(6))
    times = [tuple(map(float, answer.output.split())) for answer in answers]
    num_at_once = [sum(began <= at <= ended for began, ended in times) for at, _ in times]
    assert max(num_at_once) > 1


def test_the_machine_is_to_blame_when_a_job_cannot_be_set_up(sandbox: Sandbox):
    with pytest.raises(SandboxBrokenError, match="No such file"):
        sandbox.run(Job(command=("/bin/true",), workdir="/nowhere"))
    with pytest.raises(SandboxBrokenError, match=r"[Rr]ead-only"):
        sandbox.run(Job(command=("/bin/true",), mounts=(Mount(source=ROOT, target="/usr/new"),)))


def test_stop_ends_running_jobs_at_once_and_refuses_new_ones(sandbox: Sandbox):
    job = Job(command=("/bin/sleep", "60"), limits=Limits(wall_s=30))
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(sandbox.run, job) for _ in range(2)]
        threading.Event().wait(0.3)
        sandbox.stop()
        # Long before their own limit would end them, however busy the machine.
        for future in running:
            with pytest.raises(SandboxStoppedError):
                future.result(timeout=15)
    with pytest.raises(SandboxStoppedError):
        sandbox.run(job)


def test_a_driver_that_is_killed_leaves_no_process(sandbox: Sandbox):
    marker = f"orphan-{os.getpid()}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, sandbox.name], stdin=subprocess.PIPE, env=environment
    ) as driver:
        assert driver.stdin is not None
        driver.stdin.write(marker.encode() + b"\n")
        driver.stdin.flush()
        assert wait_until(2, marker, within_s=30)
        driver.send_signal(signal.SIGKILL)
    assert wait_until(0, marker, within_s=10)


def test_nothing_stays_open_in_the_driver(sandbox: Sandbox):
    def num_descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = num_descriptors()
    for _ in range(3):
        sandbox.run(Job(command=("/bin/true",), stdin=bytes(100_000)))
        with pytest.raises(SandboxBrokenError):
            sandbox.run(Job(command=("/bin/true",), workdir="/nowhere"))
    assert num_descriptors() == before
