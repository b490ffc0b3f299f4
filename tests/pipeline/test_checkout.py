"""What git says of a commit is a verdict only where it is about the commit."""

import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import git
import pytest

from pipeline.checkout import checkout
from pipeline.task.origin import Source
from pipeline.task.reject import Reject

ROOT = Path(__file__).parents[2]
WHO = {f"GIT_{role}_{part}": "a" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


@pytest.fixture
def origin(tmp_path: Path) -> git.Repo:
    """A git repository of one commit."""
    folder = tmp_path / "origin"
    folder.mkdir()
    (folder / "tiny.py").write_text("one = 1\n")
    with git.Repo.init(folder) as repo:
        repo.git.add("--all")
        with repo.git.custom_environment(**WHO):
            repo.git.commit("--message=one")
        return repo


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


class _OnceServer(socketserver.ThreadingTCPServer):
    base: Path
    answered = False


class _OneAnswer(socketserver.BaseRequestHandler):
    """Serve the first connection as git does, and hang up on all others."""

    server: _OnceServer

    def handle(self) -> None:
        if self.server.answered:
            return
        self.server.answered = True
        stream = self.request.fileno()
        command = ["git", "daemon", "--inetd", "--export-all", f"--base-path={self.server.base}"]
        subprocess.run(command, stdin=stream, stdout=stream, stderr=subprocess.DEVNULL, check=False)


@pytest.fixture
def fickle(tmp_path: Path) -> Iterator[str]:
    """The URL of the repository on a server that answers once."""
    with _OnceServer(("127.0.0.1", 0), _OneAnswer) as server:
        server.base = tmp_path
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"git://127.0.0.1:{server.server_address[1]}/origin"
        server.shutdown()
        thread.join()


def _source(location: object, pin: str) -> Source:
    return Source(kind="git", location=str(location), pin=pin)


def test_a_server_that_hangs_up_is_unreachable(origin: git.Repo, fickle: str, folder: Path):
    result = checkout(_source(fickle, origin.head.commit.hexsha), folder)
    assert isinstance(result, Reject)
    assert result.reason == "unreachable"


def test_a_commit_that_git_does_not_find_is_a_verdict(origin: git.Repo, folder: Path):
    result = checkout(_source(origin.working_dir, "ab" * 20), folder)
    assert isinstance(result, Reject)
    assert result.reason == "no_such_commit"


def test_a_tree_that_is_no_commit_is_a_verdict(origin: git.Repo, folder: Path):
    result = checkout(_source(origin.working_dir, origin.head.commit.tree.hexsha), folder)
    assert isinstance(result, Reject)
    assert result.reason == "no_such_commit"


def test_a_folder_that_git_cannot_use_is_the_machines_fault(origin: git.Repo, folder: Path):
    (folder / ".git").write_text("no repository")
    with pytest.raises(OSError, match="git: fatal: "):
        checkout(_source(origin.working_dir, origin.head.commit.hexsha), folder)


def test_a_file_that_git_cannot_write_is_the_machines_fault(origin: git.Repo, folder: Path):
    # A folder where git must put a file, and that it may not remove.
    (folder / ".git" / "index.lock").mkdir(parents=True)
    with pytest.raises(OSError, match="git: "):
        checkout(_source(origin.working_dir, origin.head.commit.hexsha), folder)


def test_without_git_there_is_one_line(
    origin: git.Repo, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(OSError, match=r"^git is not installed, .*origin needs it$"):
        checkout(_source(origin.working_dir, "ab" * 20), folder)


def test_without_git_the_commands_start():
    environ = {**os.environ, "PATH": "/nonexistent"}
    environ.pop("GIT_PYTHON_REFRESH", None)
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "--help"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
