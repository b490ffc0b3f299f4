"""Bake what a job may read into an image: one layer a folder, none built twice."""

import fcntl
import hashlib
import os
import tarfile
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from pipeline.sandbox import view
from pipeline.sandbox.docker import layers
from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.docker.state import state_folder
from pipeline.sandbox.docker.upkeep import REPOSITORY, note_use
from pipeline.sandbox.protocol import Mount, SandboxBrokenError

_DOCKERFILE = b"FROM %s\nADD layer.tar /\n"
_NUM_LAST_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Baked:
    """An image that a job can start from.

    Example: `Baked(image="sha256:…", tag="regrow/bench:…", size_bytes=2**28, build_s=3.5, …)`.
    """

    # Its id: what it is, wherever it is.
    image: str
    # Its name: what it was made from.
    tag: str
    # With all layers, those shared with other images too.
    size_bytes: int
    # Seconds to make the layers that were missing.
    build_s: float
    was_built: bool


def bake(engine: Engine, base: str, mounts: Sequence[Mount], *, now: float | None = None) -> Baked:
    """Return the image that shows readable mounts on top of a base image.

    Args:
        engine: where to build.
        base: id of the base image.
        mounts: what to show; overlays and writable mounts are not for images.
        now: when the image is used, in seconds since 1970; this moment when None.

    Raises:
        SandboxBrokenError: the image cannot be built.
        OSError: a folder cannot be read, or may not be shown where the mount says.
    """
    began_s = time.monotonic()
    now = time.time() if now is None else now
    tag, was_built = base, False
    for layer in (*map(_layer, in_order(mounts)), _own_layer(engine)):
        parent, tag = tag, _tag(tag, layer)
        found = engine.find_image(tag)
        if found is None:
            was_built |= _build_once(engine, parent, tag, layer)
        else:
            note_use(engine, tag, found, now=now)
    with engine.calls("look at an image"):
        last = engine.api.inspect_image(tag)
    return Baked(
        image=last["Id"],
        tag=tag,
        size_bytes=last["Size"],
        build_s=time.monotonic() - began_s if was_built else 0.0,
        was_built=was_built,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """What is added to an image."""

    # For people.
    name: str
    # Differs where the content does.
    signature: str
    # Writes the layer's tar.
    write: Callable[[IO[bytes]], None]


def _layer(mount: Mount) -> _Layer:
    target = layers.place(mount)
    return _Layer(
        name=str(target),
        signature=f"{target} {layers.signature(mount)}",
        write=partial(layers.write_layer, mount=mount),
    )


def _own_layer(engine: Engine) -> _Layer:
    files = layers.own_files(engine.architecture)
    return _Layer(
        name=layers.INSIDE,
        signature=repr(files),
        write=partial(layers.write_own_layer, files=files),
    )


def in_order(mounts: Sequence[Mount]) -> list[Mount]:
    """Return what becomes a layer each: what most jobs share first, so that they share it."""
    base = Path(view.base_python()).parents[1]
    readable = [Mount(source=base, target=str(base)), *(it for it in mounts if it.mode == "read")]
    unique = {(it.source.resolve(), layers.place(it)): it for it in readable}
    kept = [it for it in unique.values() if layers.place(it) != PurePosixPath(view.SYSTEM)]
    return sorted(kept, key=_rank)


def _rank(mount: Mount) -> int:
    """Tell how often a mount changes: interpreters, environments, what has a key, the rest."""
    if view.is_prefix(mount.source):
        return 0
    if (mount.source / "pyvenv.cfg").exists():
        return 1
    return 2 if mount.key else 3


def _tag(parent: str, layer: _Layer) -> str:
    text = f"{parent}\0{layer.signature}".encode("utf-8", "surrogateescape")
    return f"{REPOSITORY}:{hashlib.sha256(text).hexdigest()}"


def _build_once(engine: Engine, parent: str, tag: str, layer: _Layer) -> bool:
    """Build an image, unless somebody else does just now; return whether it was built here."""
    with _locked(tag):
        if engine.find_image(tag) is not None:
            return False
        _build(engine, parent, tag, layer)
    return True


@contextmanager
def _locked(tag: str) -> Iterator[None]:
    """Let one thread of one process at a time build an image; the others find it built."""
    path = state_folder() / f"{tag.rpartition(':')[2]}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _build(engine: Engine, parent: str, tag: str, layer: _Layer) -> None:
    """Build one layer on top of an image."""
    log = state_folder() / f"build-{tag.rpartition(':')[2][:12]}.log"
    with tempfile.TemporaryFile() as context, log.open("w", encoding="utf-8") as file:
        _write_context(context, parent, layer)
        context.seek(0)
        with engine.calls("build an image"):
            steps = engine.api.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                rm=True,
                forcerm=True,
                network_mode="none",
                decode=True,
                use_config_proxy=False,
                labels={"regrow": "1"},
            )
            failure = _follow(steps, file)
    if failure:
        lines = deque(log.read_text("utf-8").splitlines(), maxlen=_NUM_LAST_LINES)
        raise SandboxBrokenError(
            f"the image with {layer.name} cannot be built: {failure};"
            f" last lines: {' | '.join(lines)}; whole log: {log}"
        )
    log.unlink()


def _write_context(file: IO[bytes], parent: str, layer: _Layer) -> None:
    """Write what a build needs as a tar, the layer's own tar inside without a copy on the way."""
    file.seek(tarfile.BLOCKSIZE)
    layer.write(file)
    end = file.seek(0, os.SEEK_END)
    dockerfile = tarfile.TarInfo("Dockerfile")
    data = _DOCKERFILE % parent.encode()
    dockerfile.size = len(data)
    file.write(dockerfile.tobuf() + data.ljust(tarfile.BLOCKSIZE, b"\0"))
    file.write(bytes(2 * tarfile.BLOCKSIZE))
    tar = tarfile.TarInfo("layer.tar")
    tar.size = end - tarfile.BLOCKSIZE
    file.seek(0)
    file.write(tar.tobuf(tarfile.GNU_FORMAT))


def _follow(steps: Iterator[dict[str, object]], log: IO[str]) -> str:
    """Write down what a build says; return what it failed of, or nothing."""
    failure = ""
    for step in steps:
        log.write(str(step.get("stream", step.get("error", ""))))
        failure = failure or " ".join(str(step.get("error", "")).split())
    log.flush()
    return failure
