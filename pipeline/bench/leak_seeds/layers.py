"""Copies in layers of images: removed again by a later layer, which hides it and keeps it."""

import gzip
import hashlib
import json
from pathlib import Path

from pipeline.bench.leak_seeds.archives import tarred, wheel
from pipeline.bench.leak_seeds.seed import Leaked, Tools, seeds_of, write


def _whited_out(leaked: Leaked, root: Path, _: Tools) -> None:
    path = Path("work", leaked.path)
    lower = tarred({str(path): leaked.module})
    upper = tarred({str(path.parent / f".wh.{path.name}"): b""})
    write(root, {"image.tar": _legacy(lower, upper)})


def _overwritten(leaked: Leaked, root: Path, _: Tools) -> None:
    lower = tarred({f"work/{leaked.path}": leaked.module})
    upper = tarred({f"work/{leaked.path}": leaked.ablated})
    write(root, {"image.tar": _oci(gzip.compress(lower, mtime=0), gzip.compress(upper, mtime=0))})


def _downloaded(leaked: Leaked, root: Path, _: Tools) -> None:
    lower = tarred({"root/.cache/pip/wheels/ab/x.whl": wheel(leaked)})
    upper = tarred({"root/.cache/pip/.wh..wh..opq": b""})
    write(root, {"image.tar": _oci(lower, upper)})


def _legacy(*layers: bytes) -> bytes:
    """Return what `docker save` writes: a folder a layer."""
    names = [f"{hashlib.sha256(layer).hexdigest()}/layer.tar" for layer in layers]
    manifest = [{"Config": "config.json", "RepoTags": ["a:1"], "Layers": names}]
    files = {"manifest.json": json.dumps(manifest).encode(), "config.json": b"{}"}
    return tarred({**files, **dict(zip(names, layers, strict=True))})


def _oci(*layers: bytes) -> bytes:
    """Return an image in the layout of the Open Container Initiative."""
    blobs = {f"blobs/sha256/{hashlib.sha256(it).hexdigest()}": it for it in layers}
    parts = [{"digest": name.replace("blobs/", "").replace("/", ":")} for name in blobs]
    manifest = json.dumps({"schemaVersion": 2, "layers": parts}).encode()
    name = f"blobs/sha256/{hashlib.sha256(manifest).hexdigest()}"
    index = {"schemaVersion": 2, "manifests": [{"digest": name[6:].replace("/", ":")}]}
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', name: manifest}
    return tarred({"index.json": json.dumps(index).encode(), **files, **blobs})


SEEDS = seeds_of("image layers", "body", {
    "removed later": _whited_out, "replaced later": _overwritten, "downloads": _downloaded,
})  # fmt: skip
