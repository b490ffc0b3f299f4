"""Put an image together from layers and hand it to an engine, the same bytes each time.

An image that is built gets the time of its building, and so a new digest each time. One that is
loaded has the digest of what is in it: who has lost it can make it again and compare.
"""

import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import BAD_REQUEST
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from docker.errors import APIError, ImageLoadError, ImageNotFound

from pipeline.sandbox.docker.engine import Engine, reason
from pipeline.sandbox.protocol import SandboxBrokenError

# Of everything in an image that has no time of its own: 2000-01-01, as in Snapshots.
MTIME = 946684800
_CREATED = "2000-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A tar of files that covers the layers below it.

    Example: `Layer(diff_id="sha256:9667a0…", tar=Path("/…/layer.tar"))`.
    """

    # What engines call it: the digest of the tar.
    diff_id: str
    # None: the engine has it, above the same layers.
    tar: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    r"""A file, link or folder of a layer.

    Example: `Entry(path="etc/hostname", content=b"regrow\n")`.
    """

    # Without a leading slash.
    path: str
    kind: Literal["file", "link", "folder"] = "file"
    # Of a file; the target of a link.
    content: bytes = b""
    mode: int = 0o644
    # User and group.
    owner: int = 0


_TYPES = {"file": tarfile.REGTYPE, "link": tarfile.SYMTYPE, "folder": tarfile.DIRTYPE}


def load_image(
    engine: Engine,
    *,
    name: str,
    layers: Sequence[Layer],
    architecture: str,
    config: Mapping[str, object],
    donor: str = "",
) -> str:
    """Make an image of layers, the lowest first, unless the engine has it; return its id.

    Args:
        engine: who keeps it.
        name: `repository:` and, perhaps, the start of a tag; its content's digest completes that.
        layers: at least one.
        architecture: as Docker spells it: `amd64`.
        config: `Env`, `Labels`, `Cmd` and so on, as in the Image Specification of Docker.
        donor: an image that has the layers without a tar.

    Raises:
        SandboxBrokenError: the engine does not take it.
        EngineLostError: the engine is gone.
    """
    description = _describe(layers, architecture=architecture, config=config)
    tag = f"{name}{hashlib.sha256(description).hexdigest()[:12]}"
    if not image_id(engine, tag):
        refusal = _load(engine, description, tag=tag, layers=layers)
        if refusal and donor:
            # An engine with containerd's store of images wants to be given all of them.
            with tempfile.TemporaryDirectory(prefix="regrow-layers-") as folder:
                whole = _with_tars(engine, layers, donor=donor, folder=Path(folder))
                refusal = _load(engine, description, tag=tag, layers=whole)
        if refusal:
            raise SandboxBrokenError(f"Docker cannot take image {tag}: {refusal}")
    return image_id(engine, tag)


def _describe(layers: Sequence[Layer], *, architecture: str, config: Mapping[str, object]) -> bytes:
    """Return the configuration of an image, as its digest is taken of."""
    return json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "created": _CREATED,
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [{"created": _CREATED, "created_by": "regrow"} for _ in layers],
        },
        sort_keys=True,
    ).encode()


def image_id(engine: Engine, name: str) -> str:
    """Return the id of an image of the engine, by name or id; empty when it has no such image.

    Raises:
        ValueError: no image can have that name.
    """
    with engine.calls(f"look for image {name}"):
        try:
            return str(engine.client.images.get(name).id)
        except ImageNotFound:
            return ""
        except APIError as error:
            if error.status_code != BAD_REQUEST:
                raise
            raise ValueError(f"{name!r} is no name of an image: {reason(error)}") from error


def layers_of(engine: Engine, image: str) -> tuple[Layer, ...]:
    """Return the layers of an image that the engine has.

    Raises:
        SandboxBrokenError: it has no such image.
    """
    with engine.calls(f"look at image {image}"):
        found = engine.client.images.get(image).attrs["RootFS"]["Layers"]
    return tuple(Layer(diff_id=diff_id, tar=None) for diff_id in found)


def write_layer(entries: Iterable[Entry], *, into: Path) -> Layer:
    """Write a tar of entries, with the folders above them, that everybody may read."""
    named = {entry.path: entry for entry in entries}
    parents = {str(parent) for path in named for parent in PurePosixPath(path).parents} - {"."}
    folders = {path: Entry(path=path, kind="folder", mode=0o755) for path in parents}
    with tarfile.open(into, "w", format=tarfile.PAX_FORMAT) as tar:
        for _, entry in sorted((folders | named).items()):
            member = tarfile.TarInfo(entry.path)
            member.type, member.mode, member.mtime = _TYPES[entry.kind], entry.mode, MTIME
            member.uid = member.gid = entry.owner
            if entry.kind == "link":
                member.linkname = os.fsdecode(entry.content)
                tar.addfile(member)
            else:
                member.size = len(entry.content)
                tar.addfile(member, io.BytesIO(entry.content))
    return layer_of(into)


def layer_of(tar: Path) -> Layer:
    """Return the layer that a tar is."""
    with tar.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return Layer(diff_id=f"sha256:{digest.hexdigest()}", tar=tar)


def _load(engine: Engine, description: bytes, *, tag: str, layers: Sequence[Layer]) -> str:
    """Send an image; return why the engine does not take it, if so."""
    with tempfile.TemporaryFile() as archive:
        _write_archive(archive, tag=tag, layers=layers, description=description)
        archive.seek(0)
        with engine.calls(f"take image {tag}"):
            try:
                engine.client.images.load(archive)
            except ImageLoadError as error:
                return " ".join(str(error).split())
    return ""


def _write_archive(
    archive: IO[bytes], *, tag: str, layers: Sequence[Layer], description: bytes
) -> None:
    """Write what `docker load` reads; layers that the engine has are named there, no more."""
    config = f"{hashlib.sha256(description).hexdigest()}.json"
    names = [f"{layer.diff_id.removeprefix('sha256:')}/layer.tar" for layer in layers]
    manifest = json.dumps([{"Config": config, "RepoTags": [tag], "Layers": names}]).encode()
    with tarfile.open(fileobj=archive, mode="w") as outer:
        for name, data in (("manifest.json", manifest), (config, description)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            outer.addfile(member, io.BytesIO(data))
        for name, layer in dict(zip(names, layers, strict=True)).items():
            if layer.tar is not None:
                outer.add(layer.tar, arcname=name)


def _with_tars(
    engine: Engine, layers: Sequence[Layer], *, donor: str, folder: Path
) -> tuple[Layer, ...]:
    """Return layers of which each has its tar, those of a donor fetched from the engine."""
    saved = folder / "saved.tar"
    with saved.open("wb") as file:
        file.writelines(saved_image(engine, donor))
    diff_ids = [layer.diff_id for layer in layers_of(engine, donor)]
    with tarfile.open(saved) as archive:
        (manifest,) = json.load(_content(archive, "manifest.json"))
        names = dict(zip(diff_ids, manifest["Layers"], strict=True))
        return tuple(
            layer
            if layer.tar is not None
            else replace(
                layer, tar=_fetched(archive, names[layer.diff_id], to=folder / layer.diff_id)
            )
            for layer in layers
        )


def _fetched(archive: tarfile.TarFile, name: str, *, to: Path) -> Path:
    with to.open("wb") as file:
        shutil.copyfileobj(_content(archive, name), file)
    return to


def saved_image(engine: Engine, image: str) -> Iterator[bytes]:
    """Yield the archive of an image as `docker save` writes it.

    Raises:
        EngineLostError, SandboxBrokenError: the engine is gone, or has no such image.
    """
    # Apart from the writing, whose errors are not the engine's.
    with engine.calls(f"save image {image}"):
        yield from engine.client.images.get(image).save()


def _content(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    content = archive.extractfile(name)
    assert content is not None, name
    return content
