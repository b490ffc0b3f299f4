"""Copies in archives: wheels, sdists, one in another, caches of installers."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from pipeline.bench.leak_seeds.seed import Leaked, Tools, seeds_of, write


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive of files, compressed."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def tarred(files: Mapping[str, bytes]) -> bytes:
    """Return a tar archive of files, plain."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def wheel(leaked: Leaked) -> bytes:
    """Return a wheel of the package."""
    about = f"{leaked.package}-1.0.dist-info/METADATA"
    return zipped({leaked.path: leaked.module, about: b"Metadata-Version: 2.1\n"})


def sdist(leaked: Leaked) -> bytes:
    """Return an sdist of the package, not compressed."""
    return tarred({f"{leaked.package}-1.0/{leaked.path}": leaked.module})


def _in_dist(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"work/dist/{leaked.package}-1.0-py3-none-any.whl": wheel(leaked)})


def _in_installer_cache(leaked: Leaked, root: Path, _: Tools) -> None:
    # An installer keeps the answer of the index, a few bytes of its own before it.
    answer = b"cc=4,\x85\xa8response\x83\xa4body\xc6" + wheel(leaked)
    write(root, {"home/regrow/.cache/pip/http-v2/a/b/c/abc.body": answer})


def _without_suffix(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {"tmp/pip-unpack-k3x/download": wheel(leaked)})


def _gzip(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"work/dist/{leaked.package}-1.0.tar.gz": gzip.compress(sdist(leaked), mtime=0)})


def _xz(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {"usr/share/src/package.tar.xz": lzma.compress(sdist(leaked))})


def _bzip2(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {"home/regrow/old.tbz": bz2.compress(sdist(leaked))})


def _zstd(leaked: Leaked, root: Path, _: Tools) -> None:
    inner = gzip.compress(sdist(leaked), mtime=0)
    packed = pa.compress(tarred({"store/sdist.tar.gz": inner}), codec="zstd", asbytes=True)
    write(root, {"var/cache/builder/layer.tar.zst": packed})


def _nested(leaked: Leaked, root: Path, _: Tools) -> None:
    inner = gzip.compress(tarred({"wheels/a.whl": wheel(leaked)}), mtime=0)
    write(root, {"work/ci/artefacts.zip": zipped({"logs/run.log": b"ok\n", "all.tgz": inner})})


def _stored(leaked: Leaked, root: Path, _: Tools) -> None:
    inner = zipped({leaked.path: leaked.module})
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("inner.zip"), inner)
    # As self-extracting programs are: something runnable first.
    write(root, {"opt/tool/app.pyz": b"#!/usr/bin/env python3\n" + made.getvalue()})


def _uv_archive(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"home/regrow/.cache/uv/archive-v0/x1/{leaked.path}": leaked.module})


def _npm(leaked: Leaked, root: Path, _: Tools) -> None:
    entry = gzip.compress(tarred({f"package/python/{leaked.path}": leaked.module}), mtime=0)
    write(root, {"home/regrow/.npm/_cacache/content-v2/sha512/aa/bb/cc": entry})


def _conda(leaked: Leaked, root: Path, _: Tools) -> None:
    data = pa.compress(tarred({f"lib/{leaked.path}": leaked.module}), codec="zstd", asbytes=True)
    package = zipped({"metadata.json": b"{}", "pkg-a-1.tar.zst": data})
    write(root, {"opt/conda/pkgs/package-1.0.conda": package})


SEEDS = (
    *seeds_of("wheels", "body", {
        "in dist": _in_dist,
        "in an installer's cache": _in_installer_cache,
        "without its suffix": _without_suffix,
    }),
    *seeds_of("sdists", "body", {"gzip": _gzip, "xz": _xz, "bzip2": _bzip2}),
    *seeds_of("nested archives", "body", {
        "tar in zstd in gzip": _zstd,
        "wheel in tar in zip": _nested,
        "zip in a program": _stored,
    }),
    *seeds_of("package caches", "body", {"uv": _uv_archive, "npm": _npm, "conda": _conda}),
)  # fmt: skip
