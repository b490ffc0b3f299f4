"""Find and pin what a person names: a release in the package index, or a commit."""

import os
import re
import tempfile
from pathlib import Path

from packaging.utils import canonicalize_name

from pipeline.checkout import find_head
from pipeline.index import list_sdists
from pipeline.proposal.error import ProposalError, accepted
from pipeline.task.origin import Source

RELEASE = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.!+-]+)", re.ASCII)
URL = re.compile(r"(https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")


def name_of(target: str) -> str:
    """Return what a manifest may call a target.

    Raises:
        ProposalError: it is neither a release nor a repository.
    """
    release = RELEASE.fullmatch(target)
    if release:
        spelled = release[1]
    elif URL.fullmatch(target):
        spelled = re.split(r"[/:]", target.rstrip("/"))[-1]
    elif _is_repository(Path(target)):
        spelled = Path(os.path.realpath(target)).name
    else:
        expected = "expected NAME==VERSION, or the URL or folder of a git repository"
        raise ProposalError(f"{target}: {expected}")
    name = re.sub(r"[^a-z0-9-]+", "-", canonicalize_name(spelled.removesuffix(".git")))
    return name.strip("-") or "unnamed"


def find_source(target: str, *, index: str) -> Source:
    """Return where a target's files come from, pinned.

    Raises:
        ProposalError: it is not there.
        OSError: git is missing or broken.
    """
    if RELEASE.fullmatch(target):
        return _sdist(target, index=index)
    return _git(target if URL.fullmatch(target) else os.path.realpath(target))


def _is_repository(folder: Path) -> bool:
    return (folder / ".git").exists() or (folder / "HEAD").is_file()


def _sdist(release: str, *, index: str) -> Source:
    files = accepted(list_sdists(release, index=index))
    hashed = [file for file in files if file.sha256]
    if not hashed:
        raise ProposalError(f"{release}: the index tells no sha256 of {files[0].name}")
    # Python's own kind of archive, where there are two.
    chosen = min(hashed, key=lambda file: (not file.name.endswith(".tar.gz"), file.name))
    return Source(kind="sdist", location=release, pin=chosen.sha256)


def _git(location: str) -> Source:
    with tempfile.TemporaryDirectory(prefix="regrow-head-") as scratch:
        folder = Path(scratch, "none")
        folder.mkdir()
        commit = accepted(find_head(location, folder=folder))
    return Source(kind="git", location=location, pin=commit)
