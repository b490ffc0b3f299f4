"""What ends a job that takes too much, and that nothing else suffers."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.sandbox.protocol import GIB, MIB, Job, LimitName, Limits, Mount, MountMode, Sandbox

MakeJob = Callable[..., Job]

FILL = """
import os, sys
os.makedirs(sys.argv[1], exist_ok=True)
for number in range(1000):
    with open(f"{sys.argv[1]}/{number}", "wb") as file:
        file.write(bytes(2**20))
"""
ENDLESS = """
import sys
with open("/tmp/endless.py", "w") as file:
    file.write("while True: pass")
sys.path.append("/tmp")
import endless
"""
START_THREADS = """
import threading, time
while True:
    try:
        threading.Thread(target=time.sleep, args=(60,)).start()
    except RuntimeError:
        time.sleep(60)
"""
BOMBS: dict[str, tuple[LimitName, str, dict[str, float]]] = {
    "sleeps": ("wall", "import time; time.sleep(60)", {"wall_s": 0.5}),
    "sleeps in another session": (
        "wall",
        "import os, time; os.fork() or os.setsid(); time.sleep(60)",
        {"wall_s": 0.5},
    ),
    "spins": ("cpu", "while True: pass", {"cpu_s": 0.4}),
    "spins in children": (
        "cpu",
        "import os\n[os.fork() for _ in range(3)]\nwhile True: pass",
        {"cpu_s": 0.6},
    ),
    "spins in one child after another": (
        "cpu",
        "import os\nwhile True:\n if os.fork(): os.wait()\n else: sum(range(10**6)); os._exit(0)",
        {"cpu_s": 0.6},
    ),
    "imports a module that never ends": (
        "cpu",
        ENDLESS,
        {"cpu_s": 0.4},
    ),
    "forks": ("processes", "import os\nwhile True:\n try: os.fork()\n except OSError: pass", {}),
    "starts threads": (
        "processes",
        START_THREADS,
        {},
    ),
    "takes memory": (
        "memory",
        "kept = []\nwhile True: kept.append(b'x' * 2**20)",
        {"memory_bytes": 200 * MIB},
    ),
    "takes memory in children": (
        "memory",
        "import os, time\n[os.fork() for _ in range(3)]\nkept = b'x' * 40 * 2**20; time.sleep(60)",
        {"memory_bytes": 200 * MIB},
    ),
    "prints": ("output", "import os\nwhile True: os.write(1, b'x' * 2**16)", {}),
    "reports": ("output", "import os\nwhile True: os.write(3, b'x' * 2**16)", {}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_job_that_goes_on_for_ever_is_ended_by_its_limit(
    sandbox: Sandbox, python: MakeJob, name: str
):
    limit, code, limits = BOMBS[name]
    few = {"num_processes": 32, "output_bytes": 4 * MIB, "results_bytes": 4 * MIB, **limits}
    began_s = time.monotonic()
    finished = sandbox.run(python(code, **few))
    assert finished.limit == limit
    assert time.monotonic() - began_s < 20
    assert len(finished.output) <= 4 * MIB
    assert len(finished.results) <= 4 * MIB
    assert sandbox.run(Job(command=("/bin/true",))).exit_code == 0


@pytest.mark.parametrize("folder", ["/tmp", "/home/regrow/deep", "/dev/shm", "/overlay", "/kept"])
def test_a_job_that_fills_the_disk_is_ended(
    sandbox: Sandbox, python: MakeJob, tmp_path: Path, folder: str
):
    modes: dict[str, MountMode] = {"overlay": "overlay", "kept": "write"}
    for name in modes:
        (tmp_path / name).mkdir()
        sandbox.adopt(tmp_path / name)
    mounts = tuple(
        Mount(source=tmp_path / name, target=f"/{name}", mode=mode) for name, mode in modes.items()
    )
    finished = sandbox.run(python(FILL, folder, mounts=mounts, disk_bytes=24 * MIB))
    assert finished.limit == "disk"
    assert not any((tmp_path / "overlay").iterdir())


def test_many_empty_files_fill_a_disk_as_well(sandbox: Sandbox, python: MakeJob):
    code = "import os\nfor n in range(10**7): os.close(os.open(f'/tmp/{n}', os.O_CREAT))"
    assert sandbox.run(python(code, disk_bytes=8 * MIB)).limit == "disk"


@pytest.mark.parametrize(
    "code",
    [
        "for n in range(100_000): open(f'/tmp/{n}', 'w').write('small')",
        "f = open('/tmp/file', 'wb')\nfor _ in range(1024): f.write(bytes(2**20))",
    ],
    ids=["100,000 small files", "a file of 1 GB"],
)
def test_more_than_fits_is_stopped_in_time(sandbox: Sandbox, python: MakeJob, code: str):
    finished = sandbox.run(python(code, disk_bytes=128 * MIB, file_bytes=2 * GIB))
    assert finished.limit == "disk"
    assert sandbox.run(Job(command=("/bin/true",))).exit_code == 0


def test_what_a_writable_mount_held_before_does_not_count(
    sandbox: Sandbox, python: MakeJob, tmp_path: Path
):
    (tmp_path / "big").write_bytes(bytes(4 * MIB))
    sandbox.adopt(tmp_path)
    mounts = (Mount(source=tmp_path, target="/kept", mode="write"),)
    code = "import time; open('/kept/small', 'w').close(); time.sleep(0.7)"
    assert sandbox.run(python(code, mounts=mounts, disk_bytes=2 * MIB)).limit is None


def test_memory_that_children_share_counts_once(sandbox: Sandbox, python: MakeJob):
    code = (
        "import os, time\nkept = b'x' * 80 * 2**20\n[os.fork() for _ in range(2)]\ntime.sleep(0.5)"
    )
    assert sandbox.run(python(code, memory_bytes=200 * MIB)).limit is None


def test_a_single_file_cannot_outgrow_its_limit(sandbox: Sandbox, python: MakeJob):
    code = "open('/tmp/file', 'wb').write(bytes(2 * 2**20))"
    finished = sandbox.run(python(code, file_bytes=MIB))
    assert finished.limit is None
    assert b"File too large" in finished.output


def test_as_many_processes_as_allowed_are_no_offence(sandbox: Sandbox, python: MakeJob):
    code = "import os, time\n[os.fork() for _ in range(3)]\ntime.sleep(0.3)"
    assert sandbox.run(python(code, num_processes=8)).limit is None


def test_cpu_seconds_include_those_of_children(sandbox: Sandbox, python: MakeJob):
    code = "import os, time\nif os.fork(): os.wait()\nelse:\n while time.process_time() < 0.5: pass"
    finished = sandbox.run(python(code))
    assert 0.5 <= finished.cpu_s < 1
    assert finished.wall_s >= 0.5


def test_each_limit_is_seen_by_the_job(sandbox: Sandbox):
    job = Job(
        command=("/bin/sh", "-c", "ulimit -n; ulimit -c; ulimit -v"),
        limits=Limits(memory_bytes=512 * MIB),
    )
    assert sandbox.run(job).output.split() == [b"1024", b"0", b"1048576"]
