"""Scan every layer of a container image, also for what later layers hide."""

import json
import mmap
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from pipeline.leaks.budget import Budget, Meter, SpentError
from pipeline.leaks.decode.growing import cut
from pipeline.leaks.decode.kinds import kind_of
from pipeline.leaks.decode.piece import Data, Gap
from pipeline.leaks.decode.tars import Member, is_tar, tar_members
from pipeline.leaks.scan import Item, Matches, Scanned, scan_items
from pipeline.leaks.verdicts import Verdicts

# The tables of contents that `docker save` writes, and that the standard asks for.
_MANIFEST, _INDEX = "manifest.json", "index.json"
_MAX_JSON_BYTES = 2**22
_BLOCK = 512
_SHOWN = 12


def scan_image(
    archive: Path | IO[bytes], *, matcher: Matches, verdicts: Verdicts, budget: Budget
) -> Scanned:
    """Scan an image as `docker save` writes it, in its own layout or in that of the OCI.

    A place tells its layer, counted from the base, as the first of its decoders. Settings and
    history are scanned too.

    Args:
        archive: a tar; one that comes as a stream is kept on disk meanwhile.
        matcher: finds the keys.
        verdicts: of files in layers as of all others.
        budget: for all layers together.

    Raises:
        ValueError: it is no image.
    """
    with ExitStack() as stack:
        if isinstance(archive, Path):
            file: IO[bytes] = stack.enter_context(archive.open("rb"))
        else:
            file = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(archive, file)
            file.flush()
        image = _Image(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return scan_items(image.items, matcher=matcher, verdicts=verdicts, budget=budget)


class _Image:
    """Owns the archive of an image: its members by name, its layers in order."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._members = {it.name: it for it in tar_members(data) if isinstance(it, Member)}
        try:
            listed = list(self._listed())
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"a broken table of contents in an image's archive: {error}"
            ) from error
        # A layer may be there twice; as a link it is no member.
        self._layers = [name for name in dict.fromkeys(listed) if name in self._members]
        if not self._layers:
            raise ValueError(f"expected an image's archive with {_MANIFEST} or {_INDEX}")

    def items(self, meter: Meter) -> Iterator[Item]:
        """Yield the files of every layer, base first, then what else is in the archive."""
        for number, name in enumerate(self._layers, start=1):
            label = f"layer {number} {_short(name)}"
            try:
                yield from self._files_of(self._members[name], label, meter)
            except SpentError as error:
                if meter.is_spent:
                    raise
                yield Item(path="/", data=b"", why=error.why, decoders=(label,))
        for name, member in self._members.items():
            if name not in self._layers:
                meter.begin_file(member.end - member.start)
                data = cut(self._data, member.start, member.end, meter=meter)
                yield Item(path=f"/{name}", data=data, decoders=("image",))

    def _files_of(self, layer: Member, label: str, meter: Meter) -> Iterator[Item]:
        if is_tar(self._data[layer.start : layer.start + _BLOCK]):
            yield from _files(self._data, layer.start, layer.end, label, meter)
            return
        meter.begin_file(layer.end - layer.start)
        packed = cut(self._data, layer.start, layer.end, meter=meter)
        opener = kind_of(packed).opener
        for found in opener(packed, meter) if opener else [Gap(decoders=(), why="no reader")]:
            if isinstance(found, Gap):
                yield Item(path="/", data=b"", why=found.why, decoders=(label,))
            else:
                yield from _files(found.data, 0, len(found.data), label, meter)

    def _listed(self) -> Iterator[str]:
        """Yield the names of the layers, as one of the two tables of contents has them."""
        if _MANIFEST in self._members:
            for image in self._json(_MANIFEST):
                yield from image["Layers"]
            return
        waiting, seen = [_INDEX], {_INDEX}
        while waiting:
            name = waiting.pop()
            found = self._json(name) if name in self._members else {}
            yield from (_blob(it) for it in found.get("layers", []))
            below = {_blob(it) for it in found.get("manifests", [])} - seen
            seen |= below
            waiting += sorted(below)

    def _json(self, name: str) -> Any:  # noqa: ANN401  checked by who reads it
        member = self._members[name]
        return json.loads(
            self._data[member.start : min(member.end, member.start + _MAX_JSON_BYTES)]
        )


def _files(data: Data, start: int, end: int, label: str, meter: Meter) -> Iterator[Item]:
    """Yield the files of a layer that is a plain tar in a range of bytes."""
    for member in tar_members(data, start=start, end=end):
        meter.count_entry()
        if isinstance(member, Gap):
            yield Item(path="/", data=b"", why=member.why, decoders=(label,))
            continue
        path, size = f"/{member.name.removeprefix('./')}", member.end - member.start
        meter.begin_file(0)
        if size > meter.budget.piece_bytes:
            yield Item(path=path, data=b"", why="too large", decoders=(label,))
        else:
            content = cut(data, member.start, member.end, meter=meter)
            yield Item(path=path, data=content, decoders=(label,))


def _blob(described: dict[str, str]) -> str:
    return "blobs/" + described["digest"].replace(":", "/")


def _short(name: str) -> str:
    """Return the beginning of the digest in `blobs/sha256/…` or `…/layer.tar`."""
    return name.removesuffix("/layer.tar").rpartition("/")[2][:_SHOWN]
