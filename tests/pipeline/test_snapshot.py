"""Trees are kept as canonical archives, and archives are unpacked without harm."""

import io
import os
import random
import stat
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.archive import UnsafeArchiveError, unpack_archive
from pipeline.hygiene import clean
from pipeline.snapshot import MTIME, pack, snapshot_tree, unpack
from tests.pipeline.package_index import sdist, write_tree

SDIST = sdist({"tiny.py": "def one():\n    return 1\n"})


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


UNSAFE = {
    "absolute": [_member("/etc/x")],
    "climbing": [_member("a/../../x")],
    "device": [_member("x", tarfile.CHRTYPE)],
    "pipe": [_member("x", tarfile.FIFOTYPE)],
    "link out": [_member("x", tarfile.SYMTYPE, "../../etc/passwd")],
    "absolute link": [_member("x", tarfile.SYMTYPE, "/etc/passwd")],
    "links that leave together": [
        _member("d/up", tarfile.SYMTYPE, ".."),
        _member("x", tarfile.SYMTYPE, "d/up/../y"),
    ],
    "file through a link": [_member("l", tarfile.SYMTYPE, "d"), _member("l/x")],
    "hard link to nothing": [_member("x", tarfile.LNKTYPE, "/etc/passwd")],
    "file and folder": [_member("x"), _member("x/y")],
    "endless name": [_member("x" * 300)],
}


@pytest.mark.parametrize("members", UNSAFE.values(), ids=UNSAFE.keys())
def test_an_unsafe_tar_is_refused_and_writes_nothing_outside(
    tmp_path: Path, members: list[tarfile.TarInfo]
):
    archive, folder = tmp_path / "a.tar", tmp_path / "in" / "folder"
    with tarfile.open(archive, "w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO())
    folder.mkdir(parents=True)
    with pytest.raises(UnsafeArchiveError):
        unpack_archive(archive, folder)
    assert list((tmp_path / "in").iterdir()) == [folder]


def test_an_unsafe_zip_is_refused(tmp_path: Path):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    for entry, text in ((zipfile.ZipInfo("../x"), ""), (link, "/etc/passwd")):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr(entry, text)
        folder = tmp_path / f"folder{len(text)}"
        folder.mkdir()
        with pytest.raises(UnsafeArchiveError):
            unpack_archive(tmp_path / "a.zip", folder)


def test_what_is_no_archive_is_refused(tmp_path: Path):
    (tmp_path / "a.tar.gz").write_bytes(SDIST[: len(SDIST) // 2])
    (tmp_path / "b.tar.gz").write_bytes(b"no archive")
    for name in ("a.tar.gz", "b.tar.gz"):
        with pytest.raises(UnsafeArchiveError):
            unpack_archive(tmp_path / name, tmp_path)


def test_links_inside_and_executable_bits_survive(tmp_path: Path):
    archive, folder = tmp_path / "a.tar", tmp_path / "folder"
    folder.mkdir()
    tool = _member("bin/tool")
    tool.mode = 0o6755
    with tarfile.open(archive, "w") as tar:
        tar.addfile(_member("bin/link", tarfile.SYMTYPE, "../bin/tool"))
        tar.addfile(tool)
    unpack_archive(archive, folder)
    assert (folder / "bin/link").readlink() == Path("../bin/tool")
    assert stat.S_IMODE((folder / "bin/tool").stat().st_mode) == 0o755


NAMES = st.from_regex(r"[a-cé]{1,2}(/[a-c]{1,2}){0,2}\.py", fullmatch=True)


@settings(max_examples=30, deadline=None)
@given(files=st.dictionaries(NAMES, st.binary(max_size=40), min_size=1), seed=st.integers(0, 99))
def test_the_digest_depends_on_content_alone(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], seed: int
):
    draw = random.Random(seed)
    snapshots = []
    for owner in (0, 4321):
        tree = tmp_path_factory.mktemp("tree")
        for name in draw.sample(sorted(files), len(files)):
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[name])
            path.chmod(draw.choice([0o644, 0o600, 0o666]))
            os.utime(path, (draw.randrange(2**31), draw.randrange(2**31)))
            if os.geteuid() == 0:
                os.chown(path, owner, owner)
        snapshots.append(pack(tree, into=tmp_path_factory.mktemp("out"), released="2024-01-01"))
    (first, first_archive), (second, second_archive) = snapshots
    assert first == second
    assert first_archive.read_bytes() == second_archive.read_bytes()
    restored = snapshot_tree(first_archive, cache=tmp_path_factory.mktemp("cache"))
    assert {name: (restored / name).read_bytes() for name in files} == files
    assert {(restored / name).stat().st_mtime for name in files} == {MTIME}


def test_the_digest_changes_with_content_name_bit_and_link(tmp_path: Path):
    tree = write_tree(tmp_path / "tree", {"a.py": "1", "b.py": "2"})
    (tree / "l").symlink_to("a.py")
    digests = [pack(tree, into=tmp_path, released="")[0].digest]
    for change in (
        lambda: (tree / "a.py").write_text("3"),
        lambda: (tree / "a.py").rename(tree / "c.py"),
        lambda: (tree / "b.py").chmod(0o755),
        lambda: ((tree / "l").unlink(), (tree / "l").symlink_to("b.py")),
    ):
        change()
        digests.append(pack(tree, into=tmp_path, released="")[0].digest)
    assert len(set(digests)) == 5


def test_an_archive_whose_content_is_not_its_name_is_refused(tmp_path: Path):
    tree = write_tree(tmp_path / "tree", {"a.py": "1"})
    _, archive = pack(tree, into=tmp_path, released="")
    renamed = archive.rename(tmp_path / f"{'0' * 64}.tar.zst")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(ValueError, match="expected 0000"):
        unpack(renamed, folder)
    assert not any(folder.iterdir())
    renamed.write_bytes(b"no zstd at all")
    with pytest.raises(ValueError, match=r"0000.*tar\.zst"):
        snapshot_tree(renamed, cache=tmp_path / "cache")
    assert not any((tmp_path / "cache" / "trees").iterdir())


def test_racing_unpackers_share_one_whole_tree(tmp_path: Path):
    tree = write_tree(tmp_path / "tree", {f"m{number}.py": "x" for number in range(200)})
    _, archive = pack(tree, into=tmp_path, released="")
    found: list[int] = []

    def take() -> None:
        found.append(len(list(snapshot_tree(archive, cache=tmp_path / "cache").iterdir())))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 4
    assert len(list((tmp_path / "cache" / "trees").iterdir())) == 1


def test_cleaning_takes_residue_and_no_source_or_test(tmp_path: Path):
    kept = {
        "build/__init__.py", "build/lib/x.py", "dist/readme.txt", ".coveragerc", ".gitignore",
        "src/tiny/__init__.py", "tests/data/PKG-INFO", "tests/data/other.egg-info/PKG-INFO",
        "tests/htmlcov/test_html.py",
    }  # fmt: skip
    gone = {
        ".git/config", "PKG-INFO", "src/tiny.egg-info/SOURCES.txt", "src/tiny/a.pyc", "htmlcov/x",
        "src/tiny/__pycache__/a.py", ".coverage", ".coverage.host.1", "node_modules/x.py",
        ".hypothesis/x", "env/pyvenv.cfg", "env/lib/x.py", "sub/.git",
    }  # fmt: skip
    write_tree(tmp_path, dict.fromkeys(kept | gone, ""))
    clean(tmp_path, project="Tiny")
    assert {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()} == kept


def test_cleaning_takes_output_of_builds(tmp_path: Path):
    write_tree(tmp_path, {"build/lib/tiny.py": "", "dist/tiny-1.0.tar.gz": "", "tiny.py": ""})
    clean(tmp_path, project="tiny")
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.py"]
