"""A Repo's files become one canonical Snapshot, or a Reject that says why not."""

import dataclasses
import os
import shutil
import socket
from pathlib import Path

import git
import pytest

from pipeline.index import package_index
from pipeline.manifest import load_manifest
from pipeline.repo import Fetched, fetch
from pipeline.snapshot import snapshot_tree
from pipeline.task.origin import Install, Repo, Source, TestCommand
from pipeline.task.reject import Reject
from tests.pipeline.package_index import Offer, sdist, serve, sha256, write_tree

MANIFESTS = Path(__file__).parents[2] / "repos"

TINY = {
    "PKG-INFO": (
        "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\nRequires-Dist: six>=1\n"
        'Requires-Dist: pytest; extra == "Test_Extra"\n\nThe README, with code.\n'
    ),
    "tiny.py": "def one():\n    return 1\n",
    "tests/test_tiny.py": "def test_one():\n    pass\n",
    "tiny.egg-info/PKG-INFO": "copy",
    "tiny.egg-info/entry_points.txt": "[console_scripts]\ntiny = tiny:one\n",
}
SDIST = sdist(TINY)


def _repo(kind: str, location: str, pin: str) -> Repo:
    return Repo(
        name="tiny",
        source=Source(kind=kind, location=location, pin=pin),
        licence="MIT",
        python="3.11",
        install=Install(),
        test=TestCommand(),
    )


def _fetch(repo: Repo, tmp_path: Path, index: str = "") -> Fetched | Reject:
    return fetch(repo, into=tmp_path / "run", cache=tmp_path / "cache", index=index)


def _fetch_sdist(tmp_path: Path, index: str, pin: str, version: str = "1.0") -> Fetched | Reject:
    return _fetch(_repo("sdist", f"tiny=={version}", pin), tmp_path, index)


def _names(archive: Path, tmp_path: Path) -> set[str]:
    tree = snapshot_tree(archive, cache=tmp_path / "cache")
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}


@pytest.mark.parametrize("html", [False, True])
def test_an_sdist_becomes_a_snapshot_without_its_metadata_files(tmp_path: Path, *, html: bool):
    with serve(Offer("tiny-1.0.tar.gz", SDIST), html=html) as index:
        fetched = _fetch_sdist(tmp_path, index, sha256(SDIST))
    assert isinstance(fetched, Fetched)
    assert _names(fetched.archive, tmp_path) == {"tiny.py", "tests/test_tiny.py"}
    assert fetched.snapshot.num_files == 2
    assert fetched.archive.name == f"{fetched.snapshot.digest}.tar.zst"
    assert fetched.project.requires == ("six>=1",)
    assert fetched.project.extras == (("test-extra", ('pytest; extra == "Test_Extra"',)),)
    assert fetched.project.entry_points == "[console_scripts]\ntiny = tiny:one\n"
    assert fetched.project.metadata.startswith("Metadata-Version: 2.1\nName: tiny\n")
    assert "README" not in fetched.project.metadata


def test_the_release_is_the_day_of_the_upload_where_the_index_tells_it(tmp_path: Path):
    with serve(Offer("tiny-1.0.tar.gz", SDIST)) as index:
        fetched = _fetch_sdist(tmp_path, index, sha256(SDIST))
    assert fetched.snapshot.released == "2024-05-06"


def test_else_the_release_is_the_newest_day_in_the_sdist(tmp_path: Path):
    with serve(Offer("tiny-1.0.tar.gz", SDIST, uploaded="")) as index:
        fetched = _fetch_sdist(tmp_path, index, sha256(SDIST))
    assert fetched.snapshot.released == "2023-11-14"


@pytest.mark.parametrize("html", [False, True])
def test_with_a_date_in_the_manifest_the_release_does_not_depend_on_the_index(
    tmp_path: Path, *, html: bool
):
    repo = _repo("sdist", "tiny==1.0", sha256(SDIST))
    repo = dataclasses.replace(repo, install=Install(exclude_newer="2024-05-06"))
    with serve(Offer("tiny-1.0.tar.gz", SDIST), html=html) as index:
        fetched = _fetch(repo, tmp_path, index)
    assert isinstance(fetched, Fetched)
    assert fetched.snapshot.released == "2024-05-06"


@pytest.mark.parametrize("manifest", sorted(MANIFESTS.glob("*.toml")), ids=lambda path: path.stem)
def test_each_sdist_of_ours_comes_with_a_date(manifest: Path):
    repos = load_manifest(manifest)
    undated = [
        it.name for it in repos if it.source.kind == "sdist" and not it.install.exclude_newer
    ]
    assert not undated


def test_a_download_that_ends_early_is_no_verdict(tmp_path: Path):
    with serve(Offer("tiny-1.0.tar.gz", SDIST, missing=len(SDIST) - 3)) as index:
        reject = _fetch_sdist(tmp_path, index, sha256(SDIST))
    assert reject.reason == "unreachable"
    assert f"{len(SDIST) - 3} bytes are missing" in reject.detail


def test_a_download_is_kept_and_not_asked_for_again(tmp_path: Path):
    with serve(Offer("tiny-1.0.tar.gz", SDIST)) as index:
        _fetch_sdist(tmp_path, index, sha256(SDIST))
    with serve(Offer("tiny-1.0.tar.gz", b"gone", claimed=sha256(SDIST))) as index:
        assert isinstance(_fetch_sdist(tmp_path, index, sha256(SDIST)), Fetched)


def test_another_hash_in_the_index_is_a_reject_with_both(tmp_path: Path):
    with serve(Offer("tiny-1.0.tar.gz", SDIST)) as index:
        reject = _fetch_sdist(tmp_path, index, "0" * 64)
    assert (reject.stage, reject.reason) == ("fetch", "wrong_hash")
    assert sha256(SDIST) in reject.detail
    assert "0" * 64 in reject.detail


def test_bytes_that_are_not_what_the_index_claims_are_a_reject(tmp_path: Path):
    pin = "1" * 64
    with serve(Offer("tiny-1.0.tar.gz", SDIST, claimed=pin)) as index:
        reject = _fetch_sdist(tmp_path, index, pin)
    assert reject.reason == "wrong_hash"
    assert sha256(SDIST) in reject.detail
    assert not (tmp_path / "cache" / "downloads" / pin).exists()


def test_a_version_or_project_that_the_index_lacks_is_a_reject(tmp_path: Path):
    with serve(Offer("tiny-1.0.tar.gz", SDIST), Offer("tiny-2.0-py3-none-any.whl", b"")) as index:
        assert _fetch_sdist(tmp_path, index, "0" * 64, "1.1").reason == "no_such_version"
        assert _fetch_sdist(tmp_path, index, "0" * 64, "2.0").reason == "no_such_version"
    with serve() as index:
        assert _fetch_sdist(tmp_path, index, "0" * 64).reason == "no_such_version"


def test_a_closed_port_is_an_unreachable_index(tmp_path: Path):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        index = f"http://127.0.0.1:{reserved.getsockname()[1]}/simple"
        reject = _fetch_sdist(tmp_path, index, "0" * 64)
    assert reject.reason == "unreachable"
    assert "refused" in reject.detail


def test_the_index_is_the_one_that_pip_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    assert package_index() == "http://127.0.0.1:1/simple"
    monkeypatch.delenv("PIP_INDEX_URL")
    assert package_index().startswith("http")


def test_a_project_without_python_is_a_reject(tmp_path: Path):
    data = sdist({"README": "nothing"})
    with serve(Offer("tiny-1.0.tar.gz", data)) as index:
        assert _fetch_sdist(tmp_path, index, sha256(data)).reason == "no_python"


def test_an_sdist_that_climbs_is_a_reject(tmp_path: Path):
    data = sdist({"../../evil.py": "x"})
    with serve(Offer("tiny-1.0.tar.gz", data)) as index:
        assert _fetch_sdist(tmp_path, index, sha256(data)).reason == "unsafe_archive"


@pytest.fixture
def clone(tmp_path: Path):
    """A git repository of two commits."""
    folder = write_tree(tmp_path / "origin", {"tiny.py": "one = 1\n", "tests/test_a.py": ""})
    (folder / ".gitattributes").write_text("tests export-ignore\n*.py filter=evil\n")
    who = {
        f"GIT_{role}_{part}": "a" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
    }
    with git.Repo.init(folder) as repo:
        repo.git.add("--all")
        with repo.git.custom_environment(GIT_COMMITTER_DATE="2021-02-03T23:30:00-02:00", **who):
            repo.git.commit("--message=one")
        (folder / "tiny.py").write_text("two = 2\n")
        with repo.git.custom_environment(**who):
            repo.git.commit("--all", "--message=two")
        with repo.config_writer() as config:
            config.set_value('filter "evil"', "smudge", f"touch {tmp_path}/ran")
        yield repo


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_commit_becomes_a_snapshot(tmp_path: Path, clone: git.Repo, prefix: str):
    first = clone.commit("HEAD~1")
    repo = _repo("git", f"{prefix}{clone.working_dir}", first.hexsha)
    fetched = _fetch(repo, tmp_path)
    assert isinstance(fetched, Fetched)
    assert fetched.snapshot.released == "2021-02-04"
    tree = snapshot_tree(fetched.archive, cache=tmp_path / "cache")
    assert (tree / "tiny.py").read_text() == "one = 1\n"
    assert _names(fetched.archive, tmp_path) == {".gitattributes", "tiny.py", "tests/test_a.py"}
    assert fetched.project.name == "tiny"
    assert not (tmp_path / "ran").exists()


def test_a_commit_that_is_not_there_is_a_reject(tmp_path: Path, clone: git.Repo):
    reject = _fetch(_repo("git", str(clone.working_dir), "ab" * 20), tmp_path)
    assert reject.reason == "no_such_commit"


def test_a_commit_with_a_missing_blob_is_a_reject(tmp_path: Path, clone: git.Repo):
    blob = clone.head.commit.tree["tiny.py"].hexsha
    (Path(clone.git_dir) / "objects" / blob[:2] / blob[2:]).unlink()
    reject = _fetch(_repo("git", str(clone.working_dir), clone.head.commit.hexsha), tmp_path)
    assert reject.reason == "no_such_commit"


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.git", "/no/such/folder", "ext::touch ran"])
def test_an_unreachable_repository_is_a_reject(tmp_path: Path, url: str):
    assert _fetch(_repo("git", url, "ab" * 20), tmp_path).reason == "unreachable"


def test_a_plain_folder_becomes_a_snapshot_and_stays_as_it_is(tmp_path: Path):
    origin = write_tree(tmp_path / "origin", {"tiny.py": "", ".venv/lib/x.py": "", "PKG-INFO": ""})
    os.utime(origin / "tiny.py", (1_600_000_000, 1_600_000_000))
    os.utime(origin / "PKG-INFO", (0, 0))
    os.mkfifo(origin / "pipe")
    fetched = _fetch(_repo("path", str(origin), ""), tmp_path)
    assert _names(fetched.archive, tmp_path) == {"tiny.py"}
    assert fetched.snapshot.released == "2020-09-13"
    assert (origin / "PKG-INFO").exists()
    shutil.rmtree(origin)
    assert _fetch(_repo("path", str(origin), ""), tmp_path).reason == "unreachable"


def test_paths_start_from_the_folder_that_is_given(tmp_path: Path, clone: git.Repo):
    commit = clone.head.commit.hexsha
    for source in (_repo("git", "origin", commit), _repo("path", "./origin", "")):
        fetched = fetch(
            source, into=tmp_path / "run", cache=tmp_path / "cache", index="", base=tmp_path
        )
        assert isinstance(fetched, Fetched), fetched
        assert "tiny.py" in _names(fetched.archive, tmp_path)


def test_a_folder_with_a_link_that_leaves_it_is_a_reject(tmp_path: Path):
    origin = write_tree(tmp_path / "origin", {"tiny.py": ""})
    (origin / "link").symlink_to("/etc/passwd")
    assert _fetch(_repo("path", str(origin), ""), tmp_path).reason == "unsafe_archive"
