"""Find or make the image that all others start from: programs and libraries, no packages."""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from docker.errors import APIError

from pipeline.sandbox import view
from pipeline.sandbox.docker import debian
from pipeline.sandbox.docker.engine import Engine, reason
from pipeline.sandbox.docker.loading import image_id, layer_of, load_image
from pipeline.sandbox.docker.state import state_folder
from pipeline.sandbox.docker.strip import STRIPPING, strip
from pipeline.sandbox.protocol import SandboxUnavailableError

How = Literal["named", "pulled", "made"]

# Names the base to use.
VARIABLE = "REGROW_DOCKER_BASE"
REPOSITORY = "regrow/base"
# What a base says of itself: how it came here, and what from.
_HOW, _SOURCE = "regrow.base", "regrow.base.source"
_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The image that all others start from.

    Example: `Base(image="sha256:3f9c…", tag="regrow/base:9667a0…", how="made", …)`.
    """

    # The engine's digest.
    image: str
    tag: str
    how: How
    size_bytes: int
    # Wall seconds of making it; 0 when the engine had it.
    build_s: float


def ensure_base(engine: Engine, *, name: str | None = None) -> str:
    """Return the id of the base image; see `open_base`."""
    return open_base(engine, name=name).image


def open_base(engine: Engine, *, name: str | None = None) -> Base:
    """Return the base image, which the engine then has.

    A named one is taken; else one that was made before; else a slim one of this Python from the
    engine or its registry; else one is made of Debian packages. Whichever it is, it is stripped.

    Args:
        engine: who keeps it.
        name: of an image; the variable REGROW_DOCKER_BASE when None.

    Raises:
        SandboxUnavailableError: there is none, and none can be made; the message says why.
        SandboxBrokenError: the engine says that it cannot.
        EngineLostError: the engine is gone.
    """
    name = os.environ.get(VARIABLE, "") if name is None else name
    if name:
        return _named(engine, name)
    made_of = _key("made", *debian.recipe())
    return _kept(engine, made_of, how="made") or _slim(engine) or _made(engine, made_of)


def _named(engine: Engine, name: str) -> Base:
    """Return an image that somebody wants, pulled when the engine does not have it."""
    found = _find(engine, name)
    if not found:
        refusal = _pull(engine, name)
        found = _find(engine, name)
        if not found:
            raise SandboxUnavailableError(
                f"the engine at {engine.address} has no image {name!r}, as the base of containers"
                f" is named ({VARIABLE}), and cannot pull it: {refusal}"
            )
    return _stripped(engine, found, how="named")


def _slim(engine: Engine) -> Base | None:
    """Return Docker's own image of this Python, where the engine has it or can get it.

    It has its Python elsewhere than a Debian: jobs for the system's interpreter would find none.
    """
    if Path(sys.base_prefix).resolve() == view.SYSTEM:
        return None
    name = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim{_codename_suffix()}"
    found = _find(engine, name)
    if not found:
        _pull(engine, name)
        found = _find(engine, name)
    return _stripped(engine, found, how="pulled") if found else None


def _codename_suffix() -> str:
    """Return `-bookworm` on such a machine: an interpreter of ours needs no older C library."""
    release = platform.freedesktop_os_release()
    is_debian = release.get("ID") == "debian" and "VERSION_CODENAME" in release
    return f"-{release['VERSION_CODENAME']}" if is_debian else ""


def _find(engine: Engine, name: str) -> str:
    """Return the id of an image of the engine; empty when it has no such image."""
    try:
        return image_id(engine, name)
    except ValueError as error:
        raise SandboxUnavailableError(f"no base image ({VARIABLE}): {error}") from error


def _pull(engine: Engine, name: str) -> str:
    """Ask the engine to get an image; return why it refuses, if it does."""
    repository, _, tag = name.partition("@") if "@" in name else _split_tag(name)
    with engine.calls(f"pull {name}"):
        try:
            engine.api.pull(repository, tag=tag or "latest")
        except APIError as error:
            # A client's or a registry's no; a broken engine shows at the next call.
            return reason(error)
    return "its registry did not give it"


def _split_tag(name: str) -> tuple[str, str, str]:
    """Part `host:5000/a/b:tag` at the last colon, unless that belongs to the host."""
    path, colon, tag = name.rpartition(":")
    return (path, colon, tag) if colon and "/" not in tag else (name, "", "")


def _stripped(engine: Engine, source: str, *, how: How) -> Base:
    """Return an image without what jobs must not see; one that was stripped before as it is."""
    with engine.calls(f"look at image {source}"):
        description = engine.client.images.get(source).attrs
    if _HOW in (description["Config"].get("Labels") or {}):
        return _base(engine, source, how=how)
    made_of = _key("stripped", source)
    with _alone():
        kept = _kept(engine, made_of, how=how)
        if kept is not None:
            return kept
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="regrow-base-") as folder:
            tar = Path(folder, "exported.tar")
            _export(engine, source, into=tar)
            architecture = str(description["Architecture"])
            return _load(
                engine, tar, how=how, made_of=made_of, architecture=architecture, began_s=began_s
            )


def _export(engine: Engine, image: str, *, into: Path) -> None:
    """Write the files of an image, as they show in a container, to a tar."""
    with engine.calls(f"make a container of {image}"):
        container = engine.api.create_container(image, command=["none"], network_disabled=True)
    try:
        with into.open("wb") as file:
            file.writelines(_exported(engine, container["Id"]))
    finally:
        with engine.calls("remove a container"):
            engine.api.remove_container(container["Id"], force=True, v=True)


def _exported(engine: Engine, container: str) -> Iterator[bytes]:
    # Apart from the writing, whose errors are not the engine's.
    with engine.calls("export a container"):
        yield from engine.api.export(container, chunk_size=_CHUNK_BYTES)


def _made(engine: Engine, made_of: str) -> Base:
    """Make a base of Debian packages, unless another process has just done so."""
    with _alone():
        kept = _kept(engine, made_of, how="made")
        if kept is not None:
            return kept
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="regrow-base-") as folder:
            tar = Path(folder, "made.tar")
            debian.make(tar, log=log_file())
            with engine.calls("tell its version"):
                architecture = str(engine.api.version()["Arch"])
            return _load(
                engine,
                tar,
                how="made",
                made_of=made_of,
                architecture=architecture,
                began_s=began_s,
            )


def log_file() -> Path:
    """Return where the whole log of the last making is."""
    return state_folder() / "base-build.log"


def _load(
    engine: Engine, tar: Path, *, how: How, made_of: str, architecture: str, began_s: float
) -> Base:
    """Give the engine a base of the files in a tar."""
    with tempfile.TemporaryDirectory(prefix="regrow-base-") as folder:
        stripped = Path(folder, "stripped.tar")
        strip(tar, into=stripped)
        layer = layer_of(stripped)
        image = load_image(
            engine,
            name=f"{REPOSITORY}:",
            layers=[layer],
            architecture=architecture,
            config={"Labels": {_HOW: how, _SOURCE: made_of}},
        )
    return _base(engine, image, how=how, build_s=time.monotonic() - began_s)


def _kept(engine: Engine, made_of: str, *, how: How) -> Base | None:
    """Return the base that was made of this, where the engine has it: the newest of several."""
    # By name too: what is built on top of a base inherits what it says of itself.
    filters = {"label": f"{_SOURCE}={made_of}", "reference": f"{REPOSITORY}:*"}
    with engine.calls("list its images"):
        found = engine.client.images.list(filters=filters)
    if not found:
        return None
    newest = max(found, key=lambda it: str(it.attrs["Metadata"]["LastTagTime"]))
    return _base(engine, str(newest.id), how=how)


def _base(engine: Engine, image: str, *, how: How, build_s: float = 0.0) -> Base:
    with engine.calls(f"look at image {image}"):
        description = engine.client.images.get(image).attrs
    return Base(
        image=image,
        tag=next(iter(description["RepoTags"]), ""),
        how=how,
        size_bytes=int(description["Size"]),
        build_s=build_s,
    )


def _key(*parts: object) -> str:
    """Return the sha256 of what a base is made of and of how it is stripped."""
    return hashlib.sha256(json.dumps([STRIPPING, *parts]).encode()).hexdigest()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let one process at a time into a block; the others find its work done."""
    with (state_folder() / "base.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
