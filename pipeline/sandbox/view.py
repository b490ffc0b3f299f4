"""Spell out as bwrap's arguments what a job sees of the file system."""

import functools
import sys
from pathlib import Path, PurePosixPath

from pipeline.sandbox.protocol import Job, Mount

HOME = "/home/regrow"
LAUNCHER = "/run/regrow/launch.py"
# The mounts inside that a job can write to: overlays keep their writes in the tmpfs of the root.
VOLUMES = ("/", "/tmp", HOME, "/dev/shm")
# On top of what is measured, so that a full folder shows as a limit and not as a failing job.
_SLACK_BYTES = 2**20

_INSIDE = Path(__file__).parent / "inside"
_ETC = ("passwd", "group", "hosts", "nsswitch.conf")
_HOST_ETC = (
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
_SYSTEM = Path("/usr")
# Interpreters' prefixes whose copies every job's view of the system hides.
_HIDDEN = (_SYSTEM, _SYSTEM / "local")
# Below an interpreter's prefix: copies of packages that may hold what a Deletion took away.
_COPIES = tuple(
    place + copies
    # Debian's interpreter in `/usr` has more packages in `/usr/local`.
    for place in ("", "local/")
    for copies in (
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
    arguments = [*_system(), *_temporary_folders(job.limits.disk_bytes), *_interpreter()]
    for mount in job.mounts:
        arguments += _mount(mount)
    # The tmpfs of the root, and that of /dev, are writable for a job that owns its namespace.
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/"]


@functools.cache
def _system() -> tuple[str, ...]:
    """Return the arguments for programs and libraries, devices, and a small /etc."""
    arguments = [*_system_folders(), "--proc", "/proc", "--dev", "/dev"]
    for name in ("/etc", "/home", "/run", "/run/regrow", "/var"):
        arguments += ["--dir", name]
    for name in _HOST_ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in _ETC:
        arguments += ["--ro-bind", str(_INSIDE / "etc" / name), f"/etc/{name}"]
    arguments += ["--ro-bind", str(_INSIDE / "launch.py"), LAUNCHER]
    arguments += ["--symlink", "/tmp", "/var/tmp"]
    return (*arguments, *_masks(_SYSTEM, target=str(_SYSTEM)))


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


def _temporary_folders(size_bytes: int) -> list[str]:
    """Return the arguments for the folders that vanish with the job."""
    size = str(size_bytes + _SLACK_BYTES)
    arguments = []
    for folder, mode in (("/tmp", "1777"), ("/dev/shm", "1777"), (HOME, "0755")):
        arguments += ["--perms", mode, "--size", size, "--tmpfs", folder]
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
    return is_same and mount.source.resolve().is_relative_to(_SYSTEM)


def _bind(mount: Mount) -> list[str]:
    source, target = str(mount.source), mount.target
    if mount.mode == "overlay":
        return ["--overlay-src", source, "--tmp-overlay", target]
    if mount.mode == "write":
        return ["--bind", source, target]
    return ["--ro-bind", source, target, *_prefix_masks(mount.source, target=target)]


def _prefix_masks(folder: Path, *, target: str) -> list[str]:
    """Return the masks of a folder that an interpreter lives in; none for another."""
    # A virtual environment, whose packages must show, has no standard library.
    is_prefix = any(folder.glob("lib*/python3*/os.py"))
    return _masks(folder, target=target) if is_prefix else []


def _parents(target: str) -> list[str]:
    """Return the arguments that make the folders above a target, open to everybody.

    Left to itself bwrap makes them as closed as the source is.
    """
    parents = [str(parent) for parent in reversed(PurePosixPath(target).parents)][1:]
    return [argument for parent in parents for argument in ("--dir", parent)]


def _masks(prefix: Path, *, target: str) -> list[str]:
    """Return the arguments that put empty folders over the copies of packages below a prefix."""
    arguments = []
    real = prefix.resolve()
    copies = {copy.resolve() for pattern in _COPIES for copy in prefix.glob(pattern)}
    for copy in sorted(copy for copy in copies if copy.is_relative_to(real)):
        place = str(PurePosixPath(target) / copy.relative_to(real))
        arguments += ["--perms", "0555", "--size", "4096", "--tmpfs", place, "--remount-ro", place]
    return arguments
