"""Spell out as bwrap's arguments what a job sees of the file system."""

import functools
import sys
from pathlib import Path, PurePosixPath

from pipeline.sandbox.protocol import Job, Mount

HOME = "/home/regrow"
PROGRAMS = "/run/regrow"
LAUNCHER = f"{PROGRAMS}/launch.py"
SERVER = f"{PROGRAMS}/serve.py"
# Every job's environment.
VARIABLES = {
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "TMPDIR": "/tmp",
    "TZ": "UTC",
}
# The mounts inside that a job can write to: overlays keep their writes in the tmpfs of the root.
VOLUMES = ("/", "/tmp", HOME, "/dev/shm")
# Those of them that every job has, with their modes.
TEMPORARY = {"/tmp": "1777", "/dev/shm": "1777", HOME: "0755"}
# On top of what is measured, so that a full folder shows as a limit and not as a failing job.
_SLACK_BYTES = 2**20
# What a worker's folders may hold before a job has written anything.
_LAID_OUT_BYTES = 2**30

INSIDE = Path(__file__).parent / "inside"
ETC = ("passwd", "group", "hosts", "nsswitch.conf")
HOST_ETC = (
    "alternatives",
    "ca-certificates",
    "ld.so.cache",
    "mime.types",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
)
SYSTEM = Path("/usr")
# Interpreters' prefixes whose copies every job's view of the system hides.
_HIDDEN = (SYSTEM, SYSTEM / "local")
# Below an interpreter's prefix: copies of packages that may hold what a Deletion took away, and
# what is large and of no use to a suite: nobody has to look through it for such copies.
COPIES = tuple(
    place + copies
    # Debian's interpreter in `/usr` has more packages in `/usr/local`.
    for place in ("", "local/")
    for copies in (
        *("share/doc", "share/info", "share/man", "lib/google-cloud-sdk", "lib/jvm"),
        *("lib/node_modules", "src"),
        "lib*/python3*/site-packages",
        "lib*/python3*/dist-packages",
        "lib*/python3*/ensurepip/_bundled",
        "lib*/python3*/test/wheeldata",
        "share/python-wheels",
    )
)


def base_python() -> str:
    """Return the interpreter that starts every job: the driver's, outside of any venv."""
    return f"{sys.base_prefix}/bin/python{sys.version_info.major}.{sys.version_info.minor}"


def check_job(job: Job) -> None:
    """Raise `ValueError` for a job that no sandbox can make sense of."""
    if not job.command:
        raise ValueError("expected a command, got none")
    if "\0" in "".join((*job.command, *map("".join, job.variables), job.workdir)):
        raise ValueError("expected texts without NUL in a job's command, variables and workdir")
    if not job.workdir.startswith("/"):
        raise ValueError(f"expected an absolute workdir, got {job.workdir!r}")
    for name, _ in job.variables:
        if not name or "=" in name:
            raise ValueError(f"expected the name of a variable, got {name!r}")
    for mount in job.mounts:
        _check_mount(mount)


def _check_mount(mount: Mount) -> None:
    """Raise `ValueError` unless a mount can be made and hides nothing of ours."""
    if not mount.source.is_absolute() or not mount.source.exists():
        raise ValueError(f"expected an absolute and existing source, got {str(mount.source)!r}")
    target = PurePosixPath(mount.target)
    if not target.is_absolute() or ".." in target.parts:
        raise ValueError(f"expected an absolute target, got {mount.target!r}")
    is_ours = str(target) in {*VOLUMES, "/home", "/run"} or target.is_relative_to("/run/regrow")
    if is_ours or target.is_relative_to("/proc") or target.is_relative_to("/dev"):
        raise ValueError(f"expected a target that is not the sandbox's own, got {mount.target!r}")


def arguments(job: Job) -> list[str]:
    """Return the arguments for what a job sees; later ones cover what earlier ones show."""
    mounts = [argument for mount in job.mounts for argument in _mount(mount)]
    return _arguments(job, mounts)


def worker_arguments(job: Job) -> list[str]:
    """Return the arguments for what jobs like this one see, their own folders still empty."""
    size = _size(_LAID_OUT_BYTES + job.limits.disk_bytes)
    mounts = []
    for mount in job.mounts:
        if mount.mode == "read":
            mounts += _mount(mount)
        else:
            mounts += [*_parents(mount.target), *size, "--tmpfs", mount.target]
    return _arguments(job, mounts)


def _arguments(job: Job, mounts: list[str]) -> list[str]:
    size = _size(job.limits.disk_bytes)
    folders = [
        argument
        for folder, mode in TEMPORARY.items()
        for argument in ("--perms", mode, *size, "--tmpfs", folder)
    ]
    # The tmpfs of the root, and that of /dev, are writable for a job that owns its namespace.
    closed = ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*_system(), *folders, *_interpreter(), *mounts, *closed]


def _size(size_bytes: int) -> list[str]:
    """Return the arguments for how much the next tmpfs may hold."""
    return ["--size", str(size_bytes + _SLACK_BYTES)]


@functools.cache
def _system() -> tuple[str, ...]:
    """Return the arguments for programs and libraries, devices, and a small /etc."""
    arguments = [*_system_folders(), "--proc", "/proc", "--dev", "/dev"]
    for name in ("/etc", "/home", "/run", "/var"):
        arguments += ["--dir", name]
    for name in HOST_ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in ETC:
        arguments += ["--ro-bind", str(INSIDE / "etc" / name), f"/etc/{name}"]
    arguments += ["--ro-bind", str(INSIDE), PROGRAMS]
    arguments += ["--symlink", "/tmp", "/var/tmp"]
    return (*arguments, *_masks(SYSTEM, target=str(SYSTEM)))


def _system_folders() -> list[str]:
    """Return the arguments that show /usr, and beside it what the host has as links or folders."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        folder = Path(name)
        if folder.is_symlink():
            arguments += ["--symlink", str(folder.readlink()), name]
        elif folder.is_dir():
            arguments += ["--ro-bind", name, name]
    return arguments


@functools.cache
def _interpreter() -> tuple[str, ...]:
    """Return the arguments for the driver's interpreter, wherever it is."""
    base = Path(sys.base_prefix)
    return tuple(_mount(Mount(source=base, target=str(base))))


def _mount(mount: Mount) -> list[str]:
    """Return the arguments of one mount, below folders that are open to everybody."""
    if _is_shown(mount):
        folder = mount.source.resolve()
        return [] if folder in _HIDDEN else _prefix_masks(folder, target=str(folder))
    return [*_parents(mount.target), *_bind(mount)]


def _is_shown(mount: Mount) -> bool:
    """Tell whether the system view has it: laid over that, it would bring back what is hidden."""
    is_same = mount.mode == "read" and mount.source == Path(mount.target)
    return is_same and mount.source.resolve().is_relative_to(SYSTEM)


def _bind(mount: Mount) -> list[str]:
    source, target = str(mount.source), mount.target
    if mount.mode == "overlay":
        return ["--overlay-src", source, "--tmp-overlay", target]
    if mount.mode == "write":
        return ["--bind", source, target]
    return ["--ro-bind", source, target, *_prefix_masks(mount.source, target=target)]


def _prefix_masks(folder: Path, *, target: str) -> list[str]:
    """Return the masks of a folder that an interpreter lives in; none for another."""
    return _masks(folder, target=target) if is_prefix(folder) else []


def is_prefix(folder: Path) -> bool:
    """Tell whether an interpreter lives in a folder."""
    # A virtual environment, whose packages must show, has no standard library.
    return any(folder.glob("lib*/python3*/os.py"))


def _parents(target: str) -> list[str]:
    """Return the arguments that make the folders above a target, open to everybody.

    Left to itself bwrap makes them as closed as the source is.
    """
    parents = [str(parent) for parent in reversed(PurePosixPath(target).parents)][1:]
    return [argument for parent in parents for argument in ("--dir", parent)]


def _masks(prefix: Path, *, target: str) -> list[str]:
    """Return the arguments that put empty folders over the copies of packages below a prefix."""
    arguments = []
    for copy in copies_below(prefix):
        place = str(PurePosixPath(target) / copy)
        arguments += ["--perms", "0555", "--size", "4096", "--tmpfs", place, "--remount-ro", place]
    return arguments


def copies_below(prefix: Path) -> list[Path]:
    """Return the folders with copies of packages that jobs must find empty, by relative path."""
    real = prefix.resolve()
    copies = {copy.resolve() for pattern in COPIES for copy in prefix.glob(pattern)}
    return sorted(copy.relative_to(real) for copy in copies if copy.is_relative_to(real))
