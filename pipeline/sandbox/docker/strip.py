"""Take out of a tree of files what jobs must not see, and whatever differs from day to day."""

import re
import tarfile
from pathlib import Path

from pipeline.sandbox.docker.loading import MTIME

# Part of what a base is made of: raised when another tree comes out.
STRIPPING = 1

_DROPPED = re.compile(
    r"""
    # Copies of packages, which may hold what a Deletion took away.
    (.*/)?lib[^/]*/(python|pypy)3[^/]*/(site-packages|dist-packages)/.+
    | (.*/)?lib[^/]*/(python|pypy)3[^/]*/(ensurepip/_bundled|test/wheeldata)/.+
    | (.*/)?share/python-wheels/.+
    # What nobody reads in a container.
    | usr/share/(doc|info|lintian|locale|man)/.+
    # What is left of the making, passwords, and what engines put there themselves.
    | (dev|proc|run|sys|tmp|root)/.+
    | var/(cache|log|tmp)/.+ | var/lib/(apt|systemd)/.+ | var/lib/dpkg/[^/]*-old
    | etc/(g?shadow-?|passwd-|group-|subuid-?|subgid-?)
    | etc/(hostname|hosts|machine-id|mtab|resolv\.conf) | \.dockerenv
    # What apt was told for the making: addresses of this machine's network.
    | etc/apt/.+
    """,
    re.VERBOSE | re.DOTALL,
)


def strip(tar: Path, *, into: Path) -> None:
    """Copy a tar of a whole file system without what jobs must not see.

    Modules keep the times of their package, which their compiled bytecode names; all else gets a
    time of its own, so that the same packages give the same bytes.
    """
    dropped = set()
    with (
        tarfile.open(tar, "r|") as source,
        tarfile.open(into, "w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in source:
            name = member.name.removeprefix("./").strip("/")
            if name in {"", "."}:
                continue
            # A hard link to what is dropped is another name of the same content.
            is_dropped = _DROPPED.fullmatch(name) or (
                member.islnk() and member.linkname.removeprefix("./") in dropped
            )
            if is_dropped or member.isdev():
                dropped.add(name)
                continue
            _normalise(member, name)
            target.addfile(member, source.extractfile(member) if member.isreg() else None)


def _normalise(member: tarfile.TarInfo, name: str) -> None:
    """Give a member one spelling, and no more rights than its owner's."""
    member.name = name
    member.uname = member.gname = ""
    # Neither set-user-ID nor capabilities are of use where privileges cannot be gained.
    member.mode &= 0o1777
    member.pax_headers = {}
    if member.islnk():
        member.linkname = member.linkname.removeprefix("./")
    is_module = member.isreg() and name.startswith("usr/") and "/__pycache__/" not in name
    member.mtime = int(member.mtime) if is_module else MTIME
