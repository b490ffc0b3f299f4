"""Every layer of an image is scanned, and what a later one hides."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.leaks.budget import Budget
from pipeline.leaks.image import scan_image
from pipeline.leaks.scan import Scanned
from tests.pipeline.leaks.planted import BUDGET, MATCHER, NOTHING_KEPT, SECRET

Files = dict[str, bytes]
# The secret comes in the second layer, and the third takes it away.
LAYERS: list[Files] = [
    {"etc/hosts": b"127.0.0.1 localhost\n"},
    {"work/pkg/a.py": SECRET, "work/pkg/b.py": b"pass\n"},
    {"work/pkg/.wh.a.py": b""},
]


def tarred(files: Files) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def plain(data: bytes) -> bytes:
    return data


def saved(layers: Sequence[Files]) -> bytes:
    """Return an image in the layout of older engines."""
    files: Files = {}
    names = []
    for number, layer in enumerate(layers):
        name = f"{number:064x}/layer.tar"
        files[name] = tarred(layer)
        names.append(name)
    manifest = [{"Config": "config.json", "RepoTags": ["a:b"], "Layers": names}]
    files["config.json"] = json.dumps({"history": [{"created_by": "COPY . /work"}]}).encode()
    files["manifest.json"] = json.dumps(manifest).encode()
    return tarred(files)


def standard(layers: Sequence[Files], pack: Callable[[bytes], bytes]) -> bytes:
    """Return an image in the layout of the OCI, its manifest behind an index of platforms."""
    files: Files = {}

    def blob(content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()
        files[f"blobs/sha256/{digest}"] = content
        return {"digest": f"sha256:{digest}"}

    described = [blob(pack(tarred(layer))) for layer in layers]
    config = blob(b"{}")
    manifest = blob(json.dumps({"config": config, "layers": described}).encode())
    platforms = blob(json.dumps({"manifests": [manifest]}).encode())
    files["index.json"] = json.dumps({"manifests": [platforms]}).encode()
    files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    return tarred(files)


def scan(archive: bytes, budget: Budget = BUDGET) -> Scanned:
    return scan_image(io.BytesIO(archive), matcher=MATCHER, verdicts=NOTHING_KEPT, budget=budget)


ARCHIVES = {
    "saved": saved(LAYERS),
    "standard": standard(LAYERS, plain),
    "gzip": standard(LAYERS, gzip.compress),
    "zstd": standard(LAYERS, zstd),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_file_that_a_later_layer_deletes_is_found(name: str) -> None:
    scanned = scan(ARCHIVES[name])
    (place,) = scanned.places
    assert place.path == "/work/pkg/a.py"
    assert place.decoders[0].startswith("layer 2 ")
    assert scanned.unread == ()


def test_an_archive_on_disk_is_scanned_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(ARCHIVES["saved"])
    scanned = scan_image(path, matcher=MATCHER, verdicts=NOTHING_KEPT, budget=BUDGET)
    assert scanned == scan(ARCHIVES["saved"])


def test_an_archive_in_a_layer_is_opened() -> None:
    (place,) = scan(saved([{"cache/a.tar": tarred({"a.py": SECRET})}])).places
    assert place.decoders[1:] == ("tar:a.py",)


def test_settings_and_history_are_scanned() -> None:
    history = json.dumps({"history": [{"created_by": SECRET.decode()}]}).encode()
    archive = tarred({
        "0/layer.tar": tarred({"a": b"1"}),
        "config.json": history,
        "manifest.json": b'[{"Config": "config.json", "Layers": ["0/layer.tar"]}]',
    })
    (place,) = scan(archive).places
    assert place.path == "/config.json"


def test_a_layer_that_is_cut_off_is_told() -> None:
    broken = tarred({"a.py": SECRET, "b": bytes(5000)})[:3000]
    archive = tarred({"0/layer.tar": broken, "manifest.json": b'[{"Layers": ["0/layer.tar"]}]'})
    scanned = scan(archive)
    assert [it.path for it in scanned.places] == ["/a.py"]
    assert [it.why for it in scanned.unread] == ["broken"]


def test_a_file_larger_than_allowed_is_told_and_the_others_are_read() -> None:
    layers = [{"large": bytes(2**20)}, {"a.py": SECRET}]
    scanned = scan(saved(layers), Budget(piece_bytes=2**16))
    assert [(it.path, it.why) for it in scanned.unread] == [("/large", "too large")]
    assert [it.path for it in scanned.places] == ["/a.py"]


@pytest.mark.parametrize(
    "archive",
    [
        b"no tar at all" * 99,
        tarred({"a.py": SECRET}),
        tarred({"manifest.json": b"?"}),
        tarred({"manifest.json": b'[{"Layers": ["gone"]}]'}),
        tarred({"index.json": b'{"manifests": [{}]}'}),
    ],
)
def test_what_is_no_image_is_refused(archive: bytes) -> None:
    with pytest.raises(ValueError, match="image"):
        scan(archive)
