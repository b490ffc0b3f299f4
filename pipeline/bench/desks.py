"""Open the desk of a manifest entry for a bench, without the factory around it."""

from pathlib import Path

from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.desk import Folders, open_desk
from pipeline.environment import resolve
from pipeline.index import package_index
from pipeline.repo import fetch
from pipeline.sandbox.protocol import Sandbox
from pipeline.task.grade import Desk
from pipeline.task.origin import Repo
from pipeline.task.reject import Reject


def open_repo(repo: Repo, *, folder: Path, sandbox: Sandbox) -> Desk:
    """Fetch a Repo's tree and build its environment.

    Args:
        repo: of a manifest in `repos/`.
        folder: for everything that is made.
        sandbox: whose jobs will see it.

    Raises:
        CommandFailedError: it cannot be had; the message says why.
    """
    folders = Folders(
        run=folder / "run", cache=folder / "cache", index=package_index(), scratch=folder / "work"
    )
    fetched = fetch(repo, into=folders.run, cache=folders.cache, index=folders.index, base=REPOS)
    if isinstance(fetched, Reject):
        raise _failed(repo, fetched)
    environment = resolve(repo, fetched=fetched, cache=folders.cache, index=folders.index)
    if isinstance(environment, Reject):
        raise _failed(repo, environment)
    desk = open_desk(
        fetched.snapshot, environment, command=repo.test, folders=folders, sandbox=sandbox
    )
    if isinstance(desk, Reject):
        raise _failed(repo, desk)
    return desk


def _failed(repo: Repo, reject: Reject) -> CommandFailedError:
    return CommandFailedError(f"{repo.name}: {reject.reason}: {reject.detail}")
