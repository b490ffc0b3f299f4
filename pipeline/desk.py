"""Bring a Repo's tree and environment onto this machine, ready for its suite."""

from dataclasses import dataclass
from pathlib import Path

from pipeline.environment import build
from pipeline.sandbox.protocol import Sandbox
from pipeline.snapshot import snapshot_tree
from pipeline.task.grade import Desk
from pipeline.task.origin import Environment, Snapshot, TestCommand
from pipeline.task.reject import Reject
from pipeline.task.suite import Bench
from pipeline.uv import InstallError


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where a run keeps things."""

    # The run folder: snapshots, shards, done-records.
    run: Path
    # Downloads, trees, environments and bytecode that runs share.
    cache: Path
    # URL of the package index.
    index: str
    # Trees under test; emptied when a run starts and ends.
    scratch: Path
    # Where relative paths of sources start.
    manifest_folder: Path = Path()

    def archive(self, snapshot: Snapshot) -> Path:
        """Return where a Snapshot's files are."""
        return self.run / "snapshots" / f"{snapshot.digest}.tar.zst"


def open_desk(
    snapshot: Snapshot,
    environment: Environment,
    *,
    command: TestCommand,
    folders: Folders,
    sandbox: Sandbox,
) -> Desk | Reject:
    """Unpack the Snapshot and build the Environment, unless the cache has them."""
    built = build(environment, cache=folders.cache, index=folders.index)
    if isinstance(built, Reject):
        return built
    tree = snapshot_tree(folders.archive(snapshot), cache=folders.cache)
    bytecode = folders.cache / "bytecode" / f"{environment.digest[:16]}-{snapshot.digest[:16]}"
    bytecode.mkdir(parents=True, exist_ok=True)
    sandbox.adopt(tree)
    sandbox.adopt(bytecode)
    bench = Bench(
        environment=built.folder,
        interpreter=built.interpreter_prefix,
        bytecode=bytecode,
        command=command,
        import_roots=environment.import_roots,
    )
    return Desk(tree=tree, bench=bench, sandbox=sandbox, scratch=folders.scratch)


def reopen_desk(
    snapshot: Snapshot,
    environment: Environment,
    *,
    command: TestCommand,
    folders: Folders,
    sandbox: Sandbox,
) -> Desk:
    """Open the desk of what was opened before, on this machine or another.

    Raises:
        InstallError: it cannot be: the machine has changed, which says nothing of the Repo.
    """
    desk = open_desk(snapshot, environment, command=command, folders=folders, sandbox=sandbox)
    if isinstance(desk, Reject):
        raise InstallError(f"{desk.reason}: {desk.detail}")
    return desk
