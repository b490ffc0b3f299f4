"""Make the Tasks that hacks and honest patches are tried on."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.desk import Folders, open_desk
from pipeline.hacks.setting import Setting, set_up
from pipeline.index import package_index
from pipeline.make import make_task
from pipeline.manifest import load_manifest
from pipeline.prepare import Prepared, prepare_repo
from pipeline.sandbox.protocol import Sandbox
from pipeline.selection import Choice
from pipeline.task.grade import Desk
from pipeline.task.origin import Repo
from pipeline.task.record import Feature, Task
from pipeline.task.reject import Reject
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import read_tree

MANIFEST = REPOS / "quickstart.toml"
SEED = 0

# Features by host: functions and classes, most with targets enough for some to be hidden.
TITLES = {
    "toolz": (
        "toolz.itertoolz.second",
        "toolz.sandbox.core.EqualityHashKey",
        "toolz.itertoolz.count",
        "toolz.itertoolz.isdistinct",
    ),
    "boltons": (
        "boltons.iterutils.backoff",
        "boltons.dictutils.OrderedMultiDict.todict",
        "boltons.mathutils.clamp",
        "boltons.cacheutils.cachedproperty",
    ),
    "marshmallow": (
        "marshmallow.validate.ContainsNoneOf",
        "marshmallow.validate.Equal",
        "marshmallow.validate.OneOf.options",
        "marshmallow.validate.Predicate",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """One Task, ready to be cheated on and to be graded."""

    task: Task
    desk: Desk
    setting: Setting
    # Folder of the solve tree.
    folder: Path


def open_hosts(
    folder: Path, names: Sequence[str], *, num_titles: int, sandbox: Sandbox
) -> tuple[Stand, ...]:
    """Make Tasks of some hosts.

    Args:
        folder: for everything that is made.
        names: of the hosts.
        num_titles: how many of the Features of each.
        sandbox: where everything runs.

    Raises:
        CommandFailedError: a host or a Feature of it gives no Task; the message says why.
    """
    repos = {repo.name: repo for repo in load_manifest(MANIFEST)}
    folders = Folders(
        run=folder / "run", cache=folder / "cache", index=package_index(), scratch=folder / "work"
    )
    return tuple(
        stand
        for name in names
        for stand in _open_host(
            repos[name], TITLES[name][:num_titles], folders=folders, sandbox=sandbox
        )
    )


def _open_host(
    repo: Repo, titles: Sequence[str], *, folders: Folders, sandbox: Sandbox
) -> list[Stand]:
    prepared = prepare_repo(repo, folders=folders, sandbox=sandbox, choice=Choice(seed=SEED))
    if isinstance(prepared, Reject):
        raise CommandFailedError(f"{repo.name}: {prepared.reason}: {prepared.detail}")
    desk = open_desk(
        prepared.snapshot,
        prepared.environment,
        command=repo.test,
        folders=folders,
        sandbox=sandbox,
    )
    if isinstance(desk, Reject):
        raise CommandFailedError(f"{repo.name}: {desk.reason}: {desk.detail}")
    features = {feature.title: feature for slot in prepared.slots for feature in slot}
    return [
        _make_stand(features.get(title), title, prepared=prepared, desk=desk, folders=folders)
        for title in titles
    ]


def _make_stand(
    feature: Feature | None, title: str, *, prepared: Prepared, desk: Desk, folders: Folders
) -> Stand:
    if feature is None:
        raise CommandFailedError(f"{title}: is no candidate any more")
    task = make_task(feature, prepared=prepared, desk=desk, folders=folders, seed=SEED)
    if isinstance(task, Reject):
        raise CommandFailedError(f"{title}: {task.stage}: {task.reason}: {task.detail}")
    files = solve_tree(task, read_tree(desk.tree))
    return Stand(
        task=task,
        desk=desk,
        setting=set_up(task, files),
        folder=_lay_out(task, files, desk=desk, folders=folders),
    )


def _lay_out(task: Task, files: dict[str, bytes], *, desk: Desk, folders: Folders) -> Path:
    folder = folders.run / "solve" / task.id
    shutil.copytree(desk.tree, folder, symlinks=True)
    for path in read_tree(folder).keys() - files.keys():
        (folder / path).unlink()
    for path, content in files.items():
        (folder / path).write_bytes(content)
    desk.sandbox.adopt(folder)
    return folder
