"""What is said to be seen by a job is what the job sees."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.leaks.budget import Budget, Meter
from pipeline.leaks.roots import roots_of_job
from pipeline.leaks.walk import walk
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Job, Limits, Mount, Sandbox, SandboxUnavailableError

# Everything but what the kernel makes up, and the temporary folders, which are empty.
LISTING = """
import os
names = []
for top in sorted(os.listdir("/")):
    if top in ("proc", "dev", "sys", "tmp") or os.path.islink("/" + top):
        continue
    for folder, folders, files in os.walk("/" + top):
        for name in files:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                names.append(path)
with os.fdopen(int(os.environ["REGROW_RESULTS_FD"]), "w", errors="surrogateescape") as pipe:
    pipe.write("\\n".join(names))
"""


@pytest.fixture
def bubblewrap() -> Iterator[Sandbox]:
    try:
        opened = open_sandbox("bubblewrap")
    except SandboxUnavailableError as error:
        pytest.skip(f"NOT TESTED HERE: {error}")
    yield opened
    opened.stop()


def job_over(*mounts: Mount) -> Job:
    command = (f"{sys.base_prefix}/bin/python3", "-I", "-c", LISTING)
    return Job(command=command, mounts=mounts, limits=Limits(wall_s=300, cpu_s=300))


def seen_by(job: Job) -> set[str]:
    meter = Meter(Budget())
    return {it.path for root in roots_of_job(job) for it in walk(root, meter)}


def test_every_file_that_a_job_sees_is_below_a_root_and_hardly_another(
    bubblewrap: Sandbox, tmp_path: Path
) -> None:
    for name in ("tree/pkg/a.py", "tree/data/b", "data/c", "env/lib/d.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    bubblewrap.adopt(tmp_path)
    job = job_over(
        Mount(source=tmp_path / "tree", target="/work", mode="overlay"),
        Mount(source=tmp_path / "data", target="/work/data"),
        Mount(source=tmp_path / "env", target="/env", mode="write"),
        Mount(source=Path(sys.base_prefix), target="/python"),
        Mount(source=Path("/usr"), target="/usr"),
    )
    done = bubblewrap.run(job)
    assert (done.exit_code, done.limit) == (0, None), done.output
    listed = set(done.results.decode("utf-8", "surrogateescape").splitlines())
    assert {"/work/pkg/a.py", "/work/data/c", "/env/lib/d.py"} <= listed
    assert "/work/data/b" not in listed
    seen = seen_by(job)
    assert listed <= seen
    # Some of the system is closed to the user of a job.
    assert {path for path in seen - listed if not path.startswith(("/etc/", "/usr/"))} == set()
    assert len(seen - listed) < len(listed) / 100


def test_copies_of_packages_beside_an_interpreter_are_in_no_root() -> None:
    copies = f"{sys.base_prefix}/lib/python{sys.version_info.major}.{sys.version_info.minor}"
    assert Path(copies, "site-packages", "pip").is_dir()
    seen = seen_by(job_over(Mount(source=Path(sys.base_prefix), target="/python")))
    assert any(path.startswith("/python/lib/") for path in seen)
    assert not any("/site-packages/pip/" in path for path in seen)


def test_a_job_that_no_sandbox_takes_has_no_roots() -> None:
    with pytest.raises(ValueError, match="expected a command"):
        roots_of_job(Job(command=()))
