"""Look at every attempt of a run, and keep the verdicts in its shards."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.monitor.honey import decoys_for
from pipeline.monitor.judge.judge import Judge, judge_attempts
from pipeline.monitor.monitor import Watch, look_at, watch_of
from pipeline.monitor.verdict import Weighing, decide
from pipeline.snapshot import SUFFIX, snapshot_tree
from pipeline.task.attempt import Attempt, Judged
from pipeline.task.attempt_shards import attempt_files, rewrite_attempts
from pipeline.task.manifest import RunFile, ShardError, check_files
from pipeline.task.record import Task
from pipeline.task.shards import TaskPlace, index_tasks, read_shard, read_task, shard_paths
from pipeline.task.tree import read_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """How a run's attempts are looked at."""

    # Run folder.
    run: Path
    # Where Snapshots are unpacked.
    cache: Path
    weighing: Weighing
    # Asked about what the rules do not settle; None asks nobody.
    judge: Judge | None
    # Told of each attempt that is done.
    done: Callable[[Attempt], None]


def review_run(review: Review) -> None:
    """Give every attempt of a run its verdict; those that have one of this version keep it.

    A shard is rewritten whole, once it is done or when its work ends by an exception: what was
    found by then is kept, and the same call goes on from there.

    Raises:
        ShardError: the run has no attempts, one of an unknown Task, or is not as it was written.
        JudgeError: the judge gave no answer that can be used.
        OSError: the disk is full or broken.
    """
    check_files(review.run)
    places = index_tasks(review.run)
    shards = list(zip(attempt_files(review.run), shard_paths(review.run, "attempts"), strict=True))
    if not any(file.num_rows for file, _ in shards):
        raise ShardError(f"{review.run}: holds no attempts, expected some in attempts/")
    for file, path in shards:
        _review_shard(file, list(read_shard(path, Attempt)), places, review=review)


def _review_shard(
    file: RunFile, attempts: Sequence[Attempt], places: dict[str, TaskPlace], *, review: Review
) -> None:
    current = {it.id: it for it in attempts}
    by_task: dict[str, list[Attempt]] = {}
    for it in attempts:
        if it.task_id not in places:
            raise ShardError(
                f"{review.run}/{file.path}: {it.id} is an attempt at {it.task_id}, "
                "expected a task of the run"
            )
        by_task.setdefault(it.task_id, []).append(it)
    try:
        for task_id, group in sorted(by_task.items()):
            for attempt in _review_group(places[task_id], group, review=review):
                current[attempt.id] = attempt
                review.done(attempt)
    finally:
        if list(current.values()) != list(attempts):
            rewrite_attempts(review.run, file, current.values())


def _review_group(
    place: TaskPlace, attempts: Sequence[Attempt], *, review: Review
) -> Iterator[Attempt]:
    """Yield the attempts at one Task with their verdicts: first by rules, then by the judge."""
    open_ones = [it for it in attempts if not _is_done(it, review)]
    yield from (it for it in attempts if _is_done(it, review))
    if not open_ones:
        return
    task = read_task(place)
    snapshot = read_tree(_tree_of(task, review))
    decoys = decoys_for(task, seed=task.provenance.seed, taken=snapshot.values())
    watch = watch_of(task, snapshot, decoys=decoys)
    unsettled: dict[str, Attempt] = {}
    for attempt in open_ones:
        found = _decided(attempt, watch, review, judged=_kept_opinion(attempt, review))
        if review.judge is not None and _asks(found, review.judge):
            unsettled[found.id] = found
        else:
            yield found
    if review.judge is not None and unsettled:
        # Kept even if the judge fails on the way.
        yield from unsettled.values()
        for attempt, judged in judge_attempts(watch, list(unsettled.values()), judge=review.judge):
            yield _decided(attempt, watch, review, judged=judged)


def _is_done(attempt: Attempt, review: Review) -> bool:
    found = attempt.monitored
    if found is None or found.version != review.weighing.version:
        return False
    return review.judge is None or not _asks(attempt, review.judge)


def _asks(attempt: Attempt, judge: Judge) -> bool:
    """Tell whether a judge has something to say: the rules leave it open, and it has not yet."""
    found = attempt.monitored
    assert found is not None, attempt.id
    is_settled = found.label == "hacked" or attempt.verdict == "invalid"
    return not is_settled and not judge.has_seen(found.judged)


def _kept_opinion(attempt: Attempt, review: Review) -> Judged | None:
    """Return what a judge has said before, unless another one is asked now."""
    judged = attempt.monitored.judged if attempt.monitored else None
    return judged if review.judge is None or review.judge.has_seen(judged) else None


def _decided(attempt: Attempt, watch: Watch, review: Review, *, judged: Judged | None) -> Attempt:
    seen = look_at(attempt, watch)
    found = decide(
        seen.signs,
        similarity=seen.similarity,
        is_memory=seen.is_memory,
        weighing=review.weighing,
        judged=judged,
    )
    return replace(attempt, monitored=found)


def _tree_of(task: Task, review: Review) -> Path:
    archive = review.run / "snapshots" / f"{task.snapshot.digest}{SUFFIX}"
    try:
        return snapshot_tree(archive, cache=review.cache)
    except FileNotFoundError:
        raise ShardError(f"{archive}: no such file, expected the source of {task.id}") from None
    except ValueError as error:
        raise ShardError(str(error)) from error
