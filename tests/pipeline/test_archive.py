"""An archive is unpacked inside its folder or refused as unsafe, and fails in no other way."""

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.archive import UnsafeArchiveError, unpack_archive

# Makes an archive with one link of this target.
WithLink = Callable[[Path, bytes], None]


def _zip(path: Path, *members: tuple[zipfile.ZipInfo, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for info, content in members:
            archive.writestr(info, content)


def _zip_link(path: Path, target: bytes) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    _zip(path, (info, target))


def _tar(path: Path, *members: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(bytes(member.size)))


def _link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def _tar_link(path: Path, target: bytes) -> None:
    member = _link("link", "")
    # Not limited to what the short field of a header can hold.
    member.pax_headers = {"linkpath": target.decode("utf-8", "surrogateescape")}
    _tar(path, member)


def _unpack(archive: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    unpack_archive(archive, folder)
    return folder


@pytest.mark.parametrize("make", [_zip_link, _tar_link])
@pytest.mark.parametrize("target", [b"a\0b", b"\xe9t\xe9", b"a/" * 2100, b""])
def test_a_link_to_what_is_no_path_is_unsafe(tmp_path: Path, make: WithLink, target: bytes):
    make(tmp_path / "archive", target)
    with pytest.raises(UnsafeArchiveError):
        _unpack(tmp_path / "archive", tmp_path)


@pytest.mark.parametrize("make", [_zip_link, _tar_link])
def test_a_link_inside_is_kept(tmp_path: Path, make: WithLink):
    make(tmp_path / "archive", "\u00e9".encode())
    assert (_unpack(tmp_path / "archive", tmp_path) / "link").readlink() == Path("\u00e9")


def test_a_link_behind_a_link_that_leaves_the_folder_is_not_made(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    _tar(tmp_path / "archive", _link("a", str(outside)), _link("a/b/c", "d"))
    with pytest.raises(UnsafeArchiveError):
        _unpack(tmp_path / "archive", tmp_path)
    assert not list(outside.iterdir())


def test_a_hard_link_to_a_folder_is_unsafe(tmp_path: Path):
    folder = tarfile.TarInfo("folder")
    folder.type = tarfile.DIRTYPE
    _tar(tmp_path / "archive", folder, _link("hard", "folder", tarfile.LNKTYPE))
    with pytest.raises(UnsafeArchiveError):
        _unpack(tmp_path / "archive", tmp_path)


def test_a_name_that_linux_could_not_open_is_unsafe(tmp_path: Path):
    _tar(tmp_path / "archive", tarfile.TarInfo("/".join(["\U0001f40d" * 60] * 16)))
    with pytest.raises(UnsafeArchiveError):
        _unpack(tmp_path / "archive", tmp_path)


@pytest.mark.parametrize(
    ("date", "mtime"),
    [
        ((1980, 0, 0, 0, 0, 0), 315532800),
        ((1980, 15, 1, 0, 0, 0), 344476800),
        ((2107, 12, 31, 23, 59, 58), 2**32),
    ],
)
def test_a_date_that_is_none_becomes_the_closest_one(
    tmp_path: Path, date: tuple[int, int, int, int, int, int], mtime: int
):
    info = zipfile.ZipInfo("file.py")
    info.date_time = date
    _zip(tmp_path / "archive", (info, b"x"))
    assert (_unpack(tmp_path / "archive", tmp_path) / "file.py").stat().st_mtime == mtime
