"""Every object of a repository is read, whatever refers to it and whatever keeps it."""

import os
import subprocess
from pathlib import Path

import pytest

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.unfold import unfold
from pipeline.leaks.scan import Place, scan_roots
from pipeline.leaks.walk import Root
from tests.pipeline.leaks.planted import (
    BUDGET,
    CODE_KEY,
    MATCHER,
    MOST,
    NOTHING_KEPT,
    SECRET,
    gaps_of,
    verdict_on,
    ways_to_body,
)

FILLER = b"".join(b"value_%d = %d\n" % (number, number * number) for number in range(4000))


def git(folder: Path, *arguments: str) -> str:
    settings = ("user.name=a", "user.email=a@example.org", "protocol.file.allow=always")
    options = [part for it in settings for part in ("-c", it)]
    environment = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    command = ["git", *options, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, content: bytes | None, message: str = "change") -> None:
    if content is None:
        (folder / "units.py").unlink()
    else:
        (folder / "units.py").write_bytes(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository whose history has the secret, its tree not."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, FILLER)
    commit(folder, FILLER + SECRET)
    commit(folder, FILLER + b"x = 1\n")
    return folder


def bodies_below(folder: Path) -> list[Place]:
    root = Root(folder=folder, target="/work")
    scanned = scan_roots([root], matcher=MATCHER, verdicts=NOTHING_KEPT, budget=BUDGET)
    assert scanned.unread == ()
    places = [it for it in scanned.places if CODE_KEY not in it.found]
    return [it for it in places if len(it.found) >= MOST]


def expire(folder: Path) -> None:
    git(folder, "reflog", "expire", "--expire=now", "--all")
    git(folder, "gc", "-q", "--prune=now")


def test_a_loose_object_is_read(repository: Path) -> None:
    (place,) = bodies_below(repository)
    blob = git(repository, "rev-parse", "HEAD~1:units.py")
    assert place.path == f"/work/.git/objects/{blob[:2]}/{blob[2:]}"
    assert place.decoders == ("zlib", f"git:blob {blob[:12]}")


def test_a_delta_in_a_pack_is_read(repository: Path) -> None:
    git(repository, "gc", "-q")
    blob = git(repository, "rev-parse", "HEAD~1:units.py")
    assert "chain length" in git(repository, "verify-pack", "-v", *packs(repository))
    (place,) = bodies_below(repository)
    assert place.path.endswith(".pack")
    assert place.decoders == (f"git:blob {blob[:12]}",)


def packs(folder: Path) -> list[str]:
    return [str(path) for path in folder.glob(".git/objects/pack/*.pack")]


def test_a_pack_whose_deltas_name_their_bases_is_read(repository: Path) -> None:
    command = "git rev-list --objects --all | git pack-objects --stdout -q >pack"
    subprocess.run(["sh", "-c", command], cwd=repository, check=True)
    assert len(ways_to_body(verdict_on((repository / "pack").read_bytes()))) == 1


def test_every_object_is_read(repository: Path) -> None:
    for number in range(30):
        commit(repository, FILLER + b"y = %d\n" % number, f"message {number}")
    git(repository, "gc", "-q", "--aggressive")
    (path,) = packs(repository)
    listed = git(repository, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    names = {f"{line.split()[1]} {line[:12]}" for line in listed}
    found = unfold(Path(path).read_bytes(), Meter(BUDGET))
    assert {it.decoders[0].removeprefix("git:") for it in found} == names
    assert len(names) > 90


@pytest.mark.parametrize("kept", ["history", "nothing"])
def test_history_that_is_really_gone_is_not_found(repository: Path, kept: str) -> None:
    if kept == "nothing":
        git(repository, "checkout", "-q", "--orphan", "fresh")
        git(repository, "commit", "-qm", "fresh")
        git(repository, "branch", "-D", "main")
        expire(repository)
    assert bool(bodies_below(repository)) == (kept == "history")


def test_a_stash_is_found(repository: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "fresh")
    git(repository, "commit", "-qm", "fresh")
    git(repository, "branch", "-D", "main")
    expire(repository)
    (repository / "units.py").write_bytes(FILLER + SECRET)
    git(repository, "stash", "-q")
    git(repository, "gc", "-q", "--prune=now")
    assert bodies_below(repository) != []


def test_a_pack_that_is_marked_to_be_kept_is_found(repository: Path) -> None:
    git(repository, "gc", "-q")
    (pack,) = packs(repository)
    Path(pack).with_suffix(".keep").touch()
    git(repository, "checkout", "-q", "--orphan", "fresh")
    git(repository, "commit", "-qm", "fresh")
    git(repository, "branch", "-D", "main")
    expire(repository)
    assert bodies_below(repository) != []


def test_the_pack_of_a_partial_clone_is_found(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    address = f"file://{repository}"
    git(tmp_path, "clone", "-q", "--filter=blob:limit=1m", address, str(clone))
    assert list(clone.glob(".git/objects/pack/*.promisor"))
    git(clone, "checkout", "-q", "--orphan", "fresh")
    git(clone, "commit", "-qm", "fresh")
    git(clone, "branch", "-D", "main")
    git(clone, "remote", "remove", "origin")
    expire(clone)
    assert bodies_below(clone) != []


def test_a_bundle_is_read(repository: Path) -> None:
    git(repository, "bundle", "create", "-q", "all.bundle", "--all")
    ways = ways_to_body(verdict_on((repository / "all.bundle").read_bytes()))
    assert [way[0].partition(" ")[0] for way in ways] == ["git:blob"]


def test_of_a_thin_bundle_what_its_deltas_add_is_read_and_the_loss_told(repository: Path) -> None:
    commit(repository, FILLER + SECRET + b"z = 2\n")
    bundle = repository.parent / "thin.bundle"
    git(repository, "bundle", "create", "-q", str(bundle), "main", "^main~1")
    verdict = verdict_on(bundle.read_bytes())
    assert ("git:delta",) in ways_to_body(verdict)
    assert gaps_of(verdict) == [(("git:delta",), "broken")]


def test_messages_of_commits_and_tags_are_read(repository: Path) -> None:
    git(repository, "tag", "-a", "v1", "-m", SECRET.decode())
    git(repository, "gc", "-q")
    assert {it.decoders[-1].partition(" ")[0] for it in bodies_below(repository)} == {
        "git:blob",
        "git:tag",
    }


def test_a_pack_that_is_cut_off_is_read_as_far_as_it_goes(repository: Path) -> None:
    git(repository, "gc", "-q")
    (path,) = packs(repository)
    data = Path(path).read_bytes()
    for size in range(400, len(data) - 30, 999):
        assert (("git",), "broken") in gaps_of(verdict_on(data[:size]))


def test_a_large_object_and_its_delta_are_read(repository: Path) -> None:
    large = b"".join(b"%d\n" % (number * number) for number in range(180_000))
    commit(repository, large)
    commit(repository, large + SECRET)
    commit(repository, b"x = 2\n")
    git(repository, "gc", "-q")
    assert len(bodies_below(repository)) == 2
