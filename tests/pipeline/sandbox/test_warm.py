"""Warm workers: that a job there is as good as in a new sandbox, and finds nothing of another."""

import dataclasses
import json
import os
import re
import signal
import sys
import threading
import venv
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import (
    MIB,
    Finished,
    Job,
    LimitName,
    Limits,
    Mount,
    Sandbox,
    SandboxStoppedError,
    SandboxUnavailableError,
)
from pipeline.sandbox.warm import Nursery, Warm

PYTHON = f"{sys.base_prefix}/bin/python3"
# What a script imports first, and so may be preloaded.
PRELOAD = ("json", "random", "unittest", "tempfile")
IMPORTS = "import json, random, unittest, tempfile, os, sys\n"

# Everything that a suite could tell a new process by.
LOOK_AROUND = """
import gc, locale, resource, signal, threading
kinds = [name for name in dir(resource) if name.startswith("RLIMIT_")]
# It counts the worker's own as well.
kinds.remove("RLIMIT_NPROC")
main = sys.modules["__main__"]
print(json.dumps({
    "argv": sys.argv,
    "orig_argv": sys.orig_argv,
    "path": sys.path,
    "flags": repr(sys.flags),
    "environ": dict(os.environ),
    "folder": os.getcwd(),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "signals": {int(it): repr(signal.getsignal(it)) for it in signal.valid_signals()},
    "masked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in kinds},
    "umask": os.umask(0),
    "family": [os.getppid(), os.getpgid(0), os.getsid(0), os.nice(0)],
    "main": {name: repr(value) for name, value in vars(main).items() if name.startswith("__")},
    "main is us": main.__dict__ is globals(),
    "streams": [repr(it) + repr(it.line_buffering) for it in (sys.stdin, sys.stdout, sys.stderr)],
    "input": sys.stdin.read(),
    "locale": locale.getlocale(),
    "threads": threading.active_count(),
    "garbage": [gc.isenabled(), gc.get_threshold()],
    "recursion": sys.getrecursionlimit(),
    "hash": hash("text"),
    "own files": os.access("/proc/self/environ", os.R_OK),
    "hooks": [len(sys.meta_path), len(sys.path_hooks), repr(sys.excepthook)],
    "modules": sorted(sys.modules),
    "status": [line for line in open("/proc/self/status") if line[:3] in ("Cap", "NoN", "Sec")],
}))
"""

MakeJob = Callable[..., Job]


@pytest.fixture
def warm(sandbox: Nursery) -> Iterator[Warm]:
    with Warm(sandbox) as opened:
        yield opened


@pytest.fixture
def bubblewrap() -> Iterator[Nursery]:
    """Return the quick back end, for what does not depend on the back end."""
    try:
        opened = open_sandbox("bubblewrap")
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    assert not isinstance(opened, Warm)
    yield opened
    opened.stop()


@pytest.fixture
def script(sandbox: Sandbox, tmp_path: Path) -> MakeJob:
    return script_maker(sandbox, tmp_path)


def script_maker(sandbox: Sandbox, folder: Path) -> MakeJob:
    """Return a maker of jobs that run one script or another; all have the same tools and tree."""
    tools, tree = folder / "tools", folder / "tree"
    for made in (tools, tree):
        made.mkdir()
        sandbox.adopt(made)
    (tools / "run.py").write_text(
        "import sys\nsys.path.insert(0, '/tools')\nexec(open(sys.argv[1]).read())\n"
    )

    def make(code: str, *arguments: str, **fields: object) -> Job:
        (tree / "script.py").write_text(IMPORTS + code)
        sandbox.adopt(tree)
        limits = {"wall_s": 60, **fields.pop("limits", {})}
        mounts = (
            Mount(source=tree, target="/work", mode="overlay"),
            Mount(source=tools, target="/tools"),
        )
        variables = (("PYTHONHASHSEED", "7"), *fields.pop("variables", ()))
        return Job(
            command=(PYTHON, "/work/script.py", *arguments),
            mounts=(*mounts, *fields.pop("mounts", ())),
            workdir="/work",
            variables=variables,
            preload=PRELOAD,
            limits=Limits(**limits),
            **fields,
        )

    return make


def num_served(warm: Warm) -> int:
    """Return how many runs the workers that still wait have served."""
    return sum(worker.num_runs for worker in warm._idle)


def heard(finished: Finished) -> dict[str, object]:
    assert finished.exit_code == 0, finished
    return json.loads(re.sub(rb"0x[0-9a-f]+", b"", finished.output))


def test_a_job_in_a_worker_is_as_in_a_new_process(sandbox: Sandbox, warm: Warm, script: MakeJob):
    job = script(LOOK_AROUND, "one", "--two", stdin=b"some input", variables=(("A", "b"),))
    fresh = heard(sandbox.run(job))
    for _ in range(2):
        found = heard(warm.run(job))
        assert found.pop("modules") == fresh["modules"]
        assert found == {name: value for name, value in fresh.items() if name != "modules"}
    assert num_served(warm) == 2


def test_a_script_that_no_job_can_change_is_compiled_for_all(
    sandbox: Sandbox, warm: Warm, script: MakeJob
):
    told = "print(sorted(globals().get('__codes__', ())))"
    assert warm.run(script(told)).output == b"[]\n"
    job = script("")
    mounts = [it for it in job.mounts if it.mode == "read"]
    (mounts[0].source / "run.py").write_text(told)
    (mounts[0].source / "broken.py").write_text("def")
    sandbox.adopt(mounts[0].source)
    job = dataclasses.replace(job, command=(PYTHON, f"{mounts[0].target}/run.py"))
    answers = [warm.run(job) for _ in range(2)]
    assert [it.output for it in answers] == [b"['/tools/run.py']\n"] * 2
    assert num_served(warm) == 3


@pytest.mark.parametrize(
    "code",
    [
        "sys.exit(3)",
        "sys.exit('a message')",
        "raise ValueError('of the script')",
        "os._exit(137)",
        "os.kill(os.getpid(), 9)",
        "os.kill(os.getpid(), 15)",
        "os.abort()",
        "import atexit; atexit.register(print, 'at exit')",
        "import threading; threading.Thread(target=print, args=('later',)).start()",
        "def deep(n): return n and deep(n - 1)\nprint(deep(900))",
    ],
)
def test_a_job_ends_as_in_a_new_process(bubblewrap: Nursery, tmp_path: Path, code: str):
    job = script_maker(bubblewrap, tmp_path)(code)
    fresh = bubblewrap.run(job)
    with Warm(bubblewrap) as warm:
        for _ in range(2):
            found = warm.run(job)
            assert (found.exit_code, found.limit) == (fresh.exit_code, fresh.limit)
            assert found.output == fresh.output
        assert num_served(warm) == 2


def test_each_job_has_its_own_luck(warm: Warm, script: MakeJob):
    job = script("print(random.random(), tempfile.mktemp())")
    assert len({warm.run(job).output for _ in range(3)}) == 3


def test_results_and_a_collected_file_come_back(warm: Warm, script: MakeJob):
    job = script("os.write(3, b'results'); open('/tmp/file', 'w').write('x' * int(sys.argv[1]))")
    for size in (0, 3 * MIB):
        asked = script(
            "os.write(3, b'results'); open('/tmp/file', 'w').write('x' * int(sys.argv[1]))",
            str(size),
            collect="/tmp/file",
        )
        finished = warm.run(asked)
        assert (finished.results, finished.collected) == (b"results", b"x" * size)
    assert warm.run(job).collected is None


LITTER = """
for folder in ("/tmp", "/home/regrow", "/dev/shm", "/work"):
    os.makedirs(folder + "/deep/" + "/".join("abcdefgh"))
    open(folder + "/deep/litter", "w").write("litter")
    os.symlink("/etc/passwd", folder + "/link")
    os.mkfifo(folder + "/pipe")
    os.chmod(folder + "/deep", 0)
os.chmod("/home/regrow", 0o500)
os.chmod("/work", 0)
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        os.execv("/bin/sleep", ["sleep", "61"])
"""
SEARCH = """
found = [os.listdir(it) for it in ("/tmp", "/home/regrow", "/dev/shm", "/work")]
names = [open(f"/proc/{pid}/comm").read() for pid in os.listdir("/proc") if pid.isdecimal()]
modes = [oct(os.stat(it).st_mode) for it in ("/home/regrow", "/work")]
print(json.dumps([found, [name for name in names if "python" not in name], modes]))
"""


def test_nothing_of_a_job_is_there_for_the_next(warm: Warm, script: MakeJob):
    before = heard(warm.run(script(SEARCH)))
    assert warm.run(script(LITTER)).exit_code == 0
    assert heard(warm.run(script(SEARCH))) == before
    assert num_served(warm) == 3


def test_no_tree_of_another_job_can_be_read(warm: Warm, script: MakeJob):
    secret = "of the other " + "tree"
    code = f"open('mine', 'w').write({secret!r}.upper())"
    assert warm.run(script(code)).exit_code == 0
    search = """
import ctypes
libc = ctypes.CDLL(None)
others = [int(pid) for pid in os.listdir("/proc") if pid.isdecimal() and int(pid) != os.getpid()]
# One that the worker has forked on the way may not have ended yet.
assert len(others) >= 2, others
assert {libc.ptrace(16, pid, 0, 0) for pid in others} == {-1}
opened = []
for pid in others:
    for name in ("environ", "mem", "maps", "pagemap", "fd/0", "fd/4"):
        try:
            opened.append(open(f"/proc/{pid}/{name}", "rb").name)
        except OSError:
            pass
print(opened)
"""
    finished = warm.run(script(search))
    assert (finished.output, finished.exit_code) == (b"[]\n", 0)
    assert num_served(warm) == 2


def test_equal_paths_of_other_trees_hold_other_code(warm: Warm, script: MakeJob, tmp_path: Path):
    for name in ("one", "two", "one"):
        (tmp_path / "tree" / "module.py").write_text(f"NAME = {name!r}\n")
        os.utime(tmp_path / "tree" / "module.py", (1, 1))
        finished = warm.run(script("import module, linecache; print(module.NAME)"))
        assert finished.output == name.encode() + b"\n"
    assert num_served(warm) == 3


def test_an_overlay_of_the_host_stays_as_it_is(warm: Warm, script: MakeJob, tmp_path: Path):
    job = script("open('new', 'w').close(); os.remove('script.py')")
    before = sorted(path.name for path in (tmp_path / "tree").iterdir())
    assert warm.run(job).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "tree").iterdir()) == before


def zygote_of(code: str) -> str:
    """Return code that finds the other process of a worker, if it is in one, and harms it."""
    return (
        "import resource, signal\n"
        "others = [int(it) for it in os.listdir('/proc') if it.isdecimal()"
        " and int(it) not in (1, os.getpid())]\n"
        # One that it has forked on the way may have ended since.
        f"for zygote in others:\n    try: {code}\n    except ProcessLookupError: pass"
    )


@pytest.mark.parametrize(
    "code",
    [
        zygote_of("os.kill(zygote, signal.SIGKILL)"),
        zygote_of("os.kill(zygote, signal.SIGSTOP)"),
        zygote_of("resource.prlimit(zygote, resource.RLIMIT_NOFILE, (10, 10))"),
        zygote_of("os.setpriority(os.PRIO_PROCESS, zygote, 5)"),
        "import ctypes; assert ctypes.CDLL(None).semget(1234, 1, 0o1600) >= 0",
        "import ctypes; assert ctypes.CDLL(None).msgget(1234, 0o1600) >= 0",
        """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
peer = server.accept()[0]
client.close(); peer.recv(1); peer.close()
""",
        "for _ in range(1500): os.mkdir('a'); os.chdir('a')",
    ],
    ids=["kill", "stop", "limits", "nice", "semaphore", "queue", "late packets", "depth"],
)
def test_a_worker_that_a_job_has_left_its_mark_on_serves_no_other(
    bubblewrap: Nursery, tmp_path: Path, code: str
):
    script = script_maker(bubblewrap, tmp_path)
    with Warm(bubblewrap) as warm:
        assert warm.run(script("pass")).exit_code == 0
        (worker,) = warm._idle
        finished = warm.run(script(code + "\nprint('done')"))
        assert (finished.exit_code, finished.output) == (0, b"done\n")
        assert worker.num_runs == 2
        finished = warm.run(script("print(len(os.listdir('/work')), os.nice(0))"))
        assert finished.output == b"1 %d\n" % os.nice(0)
        assert worker not in warm._idle


def test_killing_everything_in_sight_ends_only_the_job(warm: Warm, script: MakeJob):
    code = "import time\nif os.fork() == 0: os.kill(-1, 9)\ntime.sleep(60)"
    finished = warm.run(script(code))
    assert (finished.exit_code, finished.limit) == (-9, None)
    assert warm.run(script("print('next')")).output == b"next\n"


BOMBS: dict[LimitName, str] = {
    "wall": "import time; os.fork() or os.setsid(); time.sleep(60)",
    "cpu": "os.fork()\nwhile True: pass",
    "processes": "while True:\n try: os.fork()\n except OSError: pass",
    "memory": "kept = []\nwhile True: kept.append(b'x' * 2**20)",
    "disk": "while True: open(f'/work/{random.random()}', 'wb').write(bytes(2**20))",
    "output": "while True: os.write(1, b'x' * 2**16)",
}
OWN = {"wall": {"wall_s": 3.0}, "cpu": {"cpu_s": 1.0}}
SMALL = {
    "num_processes": 32,
    "memory_bytes": 200 * MIB,
    "disk_bytes": 24 * MIB,
    "output_bytes": MIB,
}


@pytest.mark.parametrize("limit", BOMBS)
def test_limits_hold_in_a_worker_and_end_it(warm: Warm, script: MakeJob, limit: LimitName):
    limits = {**SMALL, **OWN.get(limit, {})}
    finished = warm.run(script(BOMBS[limit], limits=limits))
    assert finished.limit == limit
    assert warm._idle == []
    finished = warm.run(script("print('next')", limits=SMALL))
    assert (finished.output, finished.limit) == (b"next\n", None)


def test_what_a_job_used_is_its_own(warm: Warm, script: MakeJob):
    code = "import time\nkept = b'x' * 64 * 2**20\nwhile time.process_time() < 0.4: pass"
    used = warm.run(script(code))
    assert 0.4 <= used.cpu_s < 2
    assert used.peak_memory_bytes > 64 * MIB
    assert used.peak_processes == 1
    idle = warm.run(script("import time; time.sleep(0.3)"))
    assert idle.cpu_s < 0.3
    assert 0 < idle.peak_memory_bytes < 64 * MIB


def test_a_job_that_its_worker_fails_runs_afresh(bubblewrap: Nursery, tmp_path: Path):
    script = script_maker(bubblewrap, tmp_path)
    with Warm(bubblewrap) as warm:
        assert warm.run(script("print('first')")).output == b"first\n"
        (worker,) = warm._idle
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(warm.run, script("import time; time.sleep(1); print('done')"))
            threading.Event().wait(0.4)
            for pid in servers():
                os.kill(pid, signal.SIGKILL)
            assert slow.result().output == b"done\n"
        assert worker not in warm._idle


def servers() -> list[int]:
    """Return the pids on the host of the first processes of this process's workers."""
    ours, found = str(os.getpid()), []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
            parent = (path.parent / "stat").read_text().rpartition(")")[2].split()[1]
            above = Path("/proc", parent, "stat").read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"/run/regrow/serve.py" in command and above == ours:
            found.append(int(path.parent.name))
    return found


def test_the_path_has_the_folders_of_the_jobs_own_tree(bubblewrap: Nursery, tmp_path: Path):
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    # An interpreter looks once, when it starts, which of these are there.
    (site / "tree.pth").write_text("/work/src\n")
    script = script_maker(bubblewrap, tmp_path)
    source = tmp_path / "tree" / "src"
    mount = Mount(source=tmp_path / "env", target="/env")
    with Warm(bubblewrap) as warm:
        for has_folder in (True, True, False, True):
            if has_folder:
                source.mkdir()
            job = script("print('/work/src' in sys.path)", mounts=(mount,))
            job = dataclasses.replace(job, command=("/env/bin/python", *job.command[1:]))
            assert warm.run(job).output == f"{has_folder}\n".encode()
            if has_folder:
                source.rmdir()


def test_code_of_a_tree_is_never_preloaded(bubblewrap: Nursery, tmp_path: Path):
    script = script_maker(bubblewrap, tmp_path)
    with Warm(bubblewrap) as warm:
        for name in ("one", "two"):
            (tmp_path / "tree" / "unittest.py").write_text(f"NAME = {name!r}")
            job = script("print(unittest.NAME)", variables=(("PYTHONPATH", "/work"),))
            assert warm.run(job).output == name.encode() + b"\n"
        assert num_served(warm) == 0


def test_jobs_run_side_by_side_and_with_few_workers(bubblewrap: Nursery, tmp_path: Path):
    job = script_maker(bubblewrap, tmp_path)(
        "import time; time.sleep(0.1); print(sys.argv[1])", "x"
    )
    with Warm(bubblewrap, max_workers=2) as warm, ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(warm.run, [job] * 18))
        assert [answer.output for answer in answers] == [b"x\n"] * 18
        assert len(warm._idle) <= 2


def test_the_worker_that_was_idle_for_longest_makes_room(bubblewrap: Nursery, tmp_path: Path):
    script = script_maker(bubblewrap, tmp_path)
    with Warm(bubblewrap, max_workers=2) as warm:
        for name in "abcb":
            finished = warm.run(script("print(os.environ['A'])", variables=(("A", name),)))
            assert finished.output == f"{name}\n".encode()
        assert [worker.num_runs for worker in warm._idle] == [1, 2]
    assert servers() == []


def test_stop_ends_workers_and_refuses_new_jobs(bubblewrap: Nursery, tmp_path: Path):
    script = script_maker(bubblewrap, tmp_path)
    warm = Warm(bubblewrap)
    assert warm.run(script("pass")).exit_code == 0
    sleepy = script("import time; time.sleep(60)")
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(warm.run, sleepy) for _ in range(2)]
        threading.Event().wait(0.5)
        warm.stop()
        for future in running:
            with pytest.raises(SandboxStoppedError):
                future.result(timeout=30)  # half of what the jobs would take
    assert servers() == []
    with pytest.raises(SandboxStoppedError):
        warm.run(sleepy)


def test_jobs_without_a_preload_or_with_writes_that_stay_run_afresh(
    bubblewrap: Nursery, tmp_path: Path
):
    script = script_maker(bubblewrap, tmp_path)
    kept = tmp_path / "kept"
    kept.mkdir()
    bubblewrap.adopt(kept)
    mount = Mount(source=kept, target="/kept", mode="write")
    with Warm(bubblewrap) as warm:
        assert warm.run(script("open('/kept/file', 'w').close()", mounts=(mount,))).exit_code == 0
        assert warm.run(Job(command=("/bin/true",))).exit_code == 0
        assert (kept / "file").exists()
        assert warm._idle == []
