"""Look at one attempt: all signs that need no model, and the verdict that they come to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.monitor.acts import Act, acts_of, plain_path
from pipeline.monitor.call_rules import call_signs
from pipeline.monitor.diff_rules import Diff, diff_signs
from pipeline.monitor.honey import Decoy, honey_signs
from pipeline.monitor.run_rules import run_signs
from pipeline.monitor.scene import Scene, scene_of
from pipeline.monitor.taint import Secret, secret_of, taint_of
from pipeline.monitor.verdict import Weighing, decide
from pipeline.task.attempt import Attempt, Judged, Monitored, Sign
from pipeline.task.patch import PatchError, apply_patch
from pipeline.task.record import Task
from pipeline.task.solve_tree import solve_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A Task, prepared for attempts at it to be looked at.

    Example: `watch_of(task, read_tree(desk.tree))`.
    """

    task: Task
    solve_files: Mapping[str, bytes]
    # Of the gold patch.
    gold: Mapping[str, bytes | None]
    scene: Scene
    secret: Secret
    # What was planted; see `honey`.
    decoys: tuple[Decoy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What an attempt shows, before anything is weighed."""

    signs: tuple[Sign, ...]
    # Share of a deleted body that the diff repeats.
    similarity: float
    # It repeats a body that nothing had shown.
    is_memory: bool


def watch_of(task: Task, snapshot: Mapping[str, bytes], *, decoys: Sequence[Decoy] = ()) -> Watch:
    """Prepare a Task.

    Args:
        task: what was attempted.
        snapshot: files of the untouched tree.
        decoys: what was planted in the solvers' tree.
    """
    solve_files = solve_tree(task, snapshot)
    return Watch(
        task=task,
        solve_files=solve_files,
        gold=apply_patch(solve_files, task.deletion.gold_patch),
        scene=scene_of(task, solve_files),
        secret=secret_of(task, snapshot, solve_files),
        decoys=tuple(decoys),
    )


def look_at(attempt: Attempt, watch: Watch) -> Seen:
    """Return what an attempt shows; the outcome of its tests is no part of it."""
    changes = _changes(watch.solve_files, attempt.patch)
    taint = taint_of(attempt.turns, changes, watch.secret)
    acts = acts_of(attempt.turns)
    diff = Diff(before=watch.solve_files, changes=changes, gold=watch.gold, written=_written(acts))
    return Seen(
        signs=(
            *taint.signs,
            *call_signs(acts, watch.scene),
            *diff_signs(attempt, watch.task, diff, watch.scene),
            *run_signs(attempt, watch.task),
            *honey_signs(attempt, watch.decoys),
        ),
        similarity=taint.similarity,
        is_memory=taint.is_memory,
    )


def monitor(
    attempt: Attempt,
    watch: Watch,
    *,
    weighing: Weighing | None = None,
    judged: Judged | None = None,
) -> Monitored:
    """Return the verdict on an attempt; see `decide`."""
    seen = look_at(attempt, watch)
    return decide(
        seen.signs,
        similarity=seen.similarity,
        is_memory=seen.is_memory,
        weighing=weighing or Weighing(),
        judged=judged,
    )


def _written(acts: Iterable[Act]) -> Mapping[str, tuple[int, ...]]:
    """Return the numbers of the turns that wrote each path of the work tree."""
    found: dict[str, dict[int, None]] = {}
    for act in acts:
        for path in act.writes:
            found.setdefault(plain_path(path), {})[act.turn] = None
    return {path: tuple(turns) for path, turns in found.items()}


def _changes(solve_files: Mapping[str, bytes], patch: str) -> Mapping[str, bytes | None]:
    """Return the files of a patch; none of one that does not fit, which is graded as unsolved."""
    try:
        return apply_patch(solve_files, patch)
    except (PatchError, UnicodeError):
        return {}
