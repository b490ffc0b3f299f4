"""What a job can see, reach and become."""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.sandbox import view
from pipeline.sandbox.protocol import Job, Mount, Sandbox

MakeJob = Callable[..., Job]


def shell(script: str, *mounts: Mount, workdir: str = "/") -> Job:
    return Job(command=("/bin/sh", "-c", script), mounts=mounts, workdir=workdir)


@pytest.fixture
def tree(sandbox: Sandbox, tmp_path: Path) -> Path:
    """A folder with a file in it, the job's to use."""
    folder = tmp_path / "a tree, with: signs"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_text("before")
    sandbox.adopt(folder)
    return folder


def test_a_job_is_an_ordinary_user_with_a_name_and_no_groups(sandbox: Sandbox):
    finished = sandbox.run(shell("id -u; id -g; id -un; id -G; echo $HOME; cd && touch mine"))
    assert finished.output.decode().split() == ["1000", "1000", "regrow", "1000", "/home/regrow"]
    assert finished.exit_code == 0


def test_a_job_has_no_capability_and_can_gain_none(sandbox: Sandbox):
    finished = sandbox.run(shell("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"))
    found = dict(line.split(":\t") for line in finished.output.decode().splitlines())
    assert found.pop("NoNewPrivs") == "1"
    assert found.pop("Seccomp") == "2"
    assert len(found) == 5
    assert {int(mask, 16) for mask in found.values()} == {0}


@pytest.mark.parametrize(
    "call",
    [
        "libc.unshare(0x10000000)",
        "libc.unshare(0x00020000)",
        "libc.memfd_create(b'x', 0)",
        "libc.shmget(0, 4096, 0o1600)",
        "libc.setuid(0)",
        "libc.prlimit(1, 0, (ctypes.c_uint64 * 2)(0, 0), None)",
        "libc.sched_setscheduler(1, 5, (ctypes.c_int * 1)(0))",
        "libc.sched_setaffinity(1, 8, (ctypes.c_uint64 * 1)(1))",
        "libc.setpriority(0, 1, 5)",
        "libc.setpriority(2, 1000, 5)",
        "libc.ptrace(16, 1, 0, 0)",
        "libc.mount(b'x', b'/tmp', b'tmpfs', 0, 0)",
        "libc.syscall(56, 0x10000011, 0, 0, 0, 0)",
    ],
)
def test_a_job_cannot_do_what_would_take_it_out_of_sight(
    sandbox: Sandbox, python: MakeJob, call: str
):
    finished = sandbox.run(python(f"import ctypes; libc = ctypes.CDLL(None); print({call})"))
    assert finished.output == b"-1\n"


def test_a_job_reaches_itself_over_the_network_and_nobody_else(sandbox: Sandbox, python: MakeJob):
    code = """
import json, socket, sys
own = socket.create_server(("127.0.0.1", 0))
answers = [socket.socket().connect_ex(own.getsockname()), socket.gethostbyname("localhost")]
for address in (("127.0.0.1", int(sys.argv[1])), ("192.0.2.1", 80), ("9.9.9.9", 53)):
    answers.append(socket.socket().connect_ex(address) != 0)
print(json.dumps(answers))
"""
    with socket.create_server(("127.0.0.1", 0)) as host:
        finished = sandbox.run(python(code, str(host.getsockname()[1])))
    assert json.loads(finished.output) == [0, "127.0.0.1", True, True, True]


def test_a_job_cannot_write_to_the_system(sandbox: Sandbox, python: MakeJob):
    code = """
import os, sys
folders = "/ /etc /usr /usr/bin /dev /run /run/regrow /home /var".split() + sys.path[1:]
print([name for name in folders if os.path.isdir(name) and os.access(name, os.W_OK)])
"""
    assert sandbox.run(python(code)).output == b"[]\n"


def test_files_of_the_host_are_not_there(sandbox: Sandbox, tmp_path: Path):
    (tmp_path / "secret").write_text("of the host")
    names = f"/etc/shadow /sys/kernel {Path.home()}/.bashrc {tmp_path}/secret"
    finished = sandbox.run(shell(f"for name in {names}; do test -e $name && echo $name; done"))
    assert finished.output == b""


@pytest.mark.parametrize("name", ["/etc/hostname", "/var/lib"])
def test_what_has_the_name_of_a_file_of_the_host_is_another_one(sandbox: Sandbox, name: str):
    found = Path(name).stat()
    finished = sandbox.run(shell(f"stat -c '%Y %s' {name} || echo none"))
    assert finished.output.splitlines()[-1].decode() != f"{found.st_mtime:.0f} {found.st_size}"


def test_a_job_inherits_neither_descriptors_nor_variables(
    sandbox: Sandbox, python: MakeJob, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TOKEN", "of the host")
    code = "import os; print(*sorted(os.environ)); print(len(os.listdir('/proc/self/fd')))"
    names, descriptors = sandbox.run(python(code)).output.decode().splitlines()
    assert names == "HOME LANG LC_ALL PATH REGROW_RESULTS_FD TMPDIR TZ"
    # The standard ones, the results, and the listing itself.
    assert int(descriptors) == 5


def test_copies_of_packages_beside_an_interpreter_are_hidden(
    sandbox: Sandbox, python: MakeJob, tmp_path: Path
):
    library = tmp_path / "prefix" / "lib" / "python3.12"
    local = "../../local/lib/python3.12/dist-packages"
    for name in ("site-packages/pip/_vendor", "ensurepip/_bundled", local):
        (library / name).mkdir(parents=True)
        (library / name / "copy.py").write_text("def deleted(): ...")
    (library / "ensurepip" / "__init__.py").write_text("")
    (library / "os.py").write_text("")
    code = """
import glob, sys
found = glob.glob(sys.base_prefix + "/lib/python3*/site-packages/*")
found += glob.glob(sys.base_prefix + "/lib/python3*/ensurepip/_bundled/*")
found += glob.glob("/usr/lib/python3/dist-packages/*") + glob.glob("/usr/share/python-wheels/*")
found += glob.glob("/prefix/**/copy.py", recursive=True)
print(found, len(glob.glob("/prefix/lib/python3.12/ensurepip/*")))
"""
    mounts = (Mount(source=tmp_path / "prefix", target="/prefix"),)
    assert sandbox.run(python(code, mounts=mounts)).output == b"[] 2\n"


def test_packages_beside_an_interpreter_without_ensurepip_are_hidden(
    sandbox: Sandbox, tmp_path: Path
):
    prefix = tmp_path / "prefix"
    library = prefix / "lib" / "python3.12"
    (library / "dist-packages").mkdir(parents=True)
    (library / "dist-packages" / "copy.py").write_text("def deleted(): ...")
    (library / "os.py").write_text("")
    mount = Mount(source=prefix, target="/prefix")
    finished = sandbox.run(shell("find /prefix -name '*.py'", mount))
    assert finished.output == b"/prefix/lib/python3.12/os.py\n"


@pytest.mark.skipif(
    not Path("/usr/bin/python3").exists(), reason="expected an interpreter of the system"
)
@pytest.mark.parametrize("target", ["/usr", "/prefix"])
def test_a_mount_of_the_system_brings_back_none_of_its_packages(sandbox: Sandbox, target: str):
    script = (
        f"for place in {target} {target}/local; do"
        " find $place/lib*/python3*/site-packages $place/lib*/python3*/dist-packages"
        " $place/lib*/python3*/ensurepip/_bundled -mindepth 1; done 2> /dev/null;"
        f" test -e {target}/bin/python3 && echo python"
    )
    finished = sandbox.run(shell(script, Mount(source=Path("/usr"), target=target)))
    assert finished.output == b"python\n"


def test_a_mount_of_the_system_is_not_laid_over_what_is_hidden():
    usr = Mount(source=Path("/usr"), target="/usr")
    assert view.arguments(shell("true", usr)) == view.arguments(shell("true"))


def test_what_is_written_to_an_overlay_vanishes(sandbox: Sandbox, tree: Path):
    script = "echo after > inner/file; mv inner moved; echo new > new; cat moved/file new"
    mount = Mount(source=tree, target="/deep/down/work", mode="overlay")
    finished = sandbox.run(shell(f"{script}; stat -c %U .", mount, workdir="/deep/down/work"))
    assert finished.output.decode().split() == ["after", "new", "regrow"]
    assert [path.name for path in tree.rglob("*")] == ["inner", "file"]
    assert (tree / "inner" / "file").read_text() == "before"
    assert sandbox.run(shell("cat inner/file", mount, workdir=mount.target)).output == b"before"


def test_what_is_written_to_a_writable_mount_stays(sandbox: Sandbox, tree: Path):
    mount = Mount(source=tree, target="/work", mode="write")
    assert sandbox.run(shell("echo after > /work/inner/file", mount)).exit_code == 0
    assert (tree / "inner" / "file").read_text() == "after\n"


def test_a_readable_mount_cannot_be_written(sandbox: Sandbox, tree: Path):
    mount = Mount(source=tree, target="/work")
    assert sandbox.run(shell("echo after > /work/inner/file", mount)).exit_code != 0
    assert (tree / "inner" / "file").read_text() == "before"


def test_what_a_job_has_locked_away_can_be_adopted(sandbox: Sandbox, tree: Path):
    mount = Mount(source=tree, target="/work", mode="write")
    script = "ln -s /etc/passwd link; chmod 4700 inner/file; chmod 000 inner; mkdir -m 0 empty"
    sandbox.run(shell(script, mount, workdir="/work"))
    before = Path("/etc/passwd").stat()
    sandbox.adopt(tree)
    assert (tree / "inner").stat().st_mode & 0o7777 == 0o700
    assert (tree / "inner" / "file").stat().st_mode & 0o7777 == 0o700
    assert (tree / "inner" / "file").read_text() == "before"
    assert Path("/etc/passwd").stat() == before


@pytest.mark.parametrize(
    ("mount", "workdir"),
    [
        (Mount(source=Path("/nonexistent"), target="/work"), "/"),
        (Mount(source=Path("relative"), target="/work"), "/"),
        (Mount(source=Path("/usr"), target="work"), "/"),
        (Mount(source=Path("/usr"), target="/work/../etc"), "/"),
        (Mount(source=Path("/usr"), target="/tmp"), "/"),
        (Mount(source=Path("/usr"), target="/proc/self"), "/"),
        (Mount(source=Path("/usr"), target="/work"), "relative"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(sandbox: Sandbox, mount: Mount, workdir: str):
    with pytest.raises(ValueError, match="expected"):
        sandbox.run(shell("true", mount, workdir=workdir))


def test_texts_with_nul_are_refused(sandbox: Sandbox):
    for job in (Job(command=("a\0b",)), Job(command=("true",), variables=(("A", "b\0C=d"),))):
        with pytest.raises(ValueError, match="NUL"):
            sandbox.run(job)
