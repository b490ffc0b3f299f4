"""Turn the done-records of a run into shards and a manifest: the run's last step."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from pipeline.factory import Envelope, Factory
from pipeline.feature import LeftOut
from pipeline.task.attempt_shards import kept_attempts
from pipeline.task.canonical import content_id
from pipeline.task.manifest import RunFile, describe, write_manifest
from pipeline.task.origin import Repo
from pipeline.task.patch import is_protected
from pipeline.task.patch_text import parse_patch
from pipeline.task.record import SCHEMA_VERSION, Task
from pipeline.task.reject import Reject, RejectRow
from pipeline.task.shards import write_shards


class IncompleteRunError(RuntimeError):
    """Units of the run have no done-record; rerunning the same command does them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Everything a run came to."""

    tasks: tuple[Task, ...]
    rejects: tuple[RejectRow, ...]


def finalise(repos: Sequence[Repo], *, factory: Factory) -> Outcome:
    """Write the shards and, last, the manifest; doing it again changes nothing.

    Raises:
        IncompleteRunError: a unit has no done-record.
        OSError: the disk is full; what was there stays readable.
    """
    outcome = collect(repos, factory=factory)
    run = factory.settings.out
    shards = [
        *write_shards(run, "tasks", outcome.tasks),
        *write_shards(run, "rejects", outcome.rejects),
        *kept_attempts(run),
    ]
    write_manifest(run, [*shards, *_attached(outcome, factory)], config=_config(repos, factory))
    return outcome


def collect(repos: Sequence[Repo], *, factory: Factory) -> Outcome:
    """Read every unit's done-record, in the order of the plan; book repeated deletions."""
    tasks: dict[str, Task] = {}
    rejects: list[RejectRow] = []
    for repo in repos:
        for result in _results(repo, factory):
            if isinstance(result, LeftOut):
                rejects.append(_row(repo, result))
            elif _deletion_key(result) in tasks:
                rejects.append(_row(repo, _repeated(result, tasks[_deletion_key(result)])))
            else:
                tasks[_deletion_key(result)] = result
    return Outcome(tasks=tuple(tasks.values()), rejects=tuple(rejects))


def _results(repo: Repo, factory: Factory) -> Iterator[Task | LeftOut]:
    key = factory.prepare_key(repo)
    _require(factory, key, f"{repo.name} is not prepared")
    prepared = factory.read_prepared(key)
    if isinstance(prepared, Reject):
        yield LeftOut(subject=repo.name, reject=prepared)
        return
    yield from prepared.left_out
    envelope = Envelope(stage="prepare", repo=repo.name, status="ok", key=key)
    units = list(factory.units(envelope))
    for unit in units:
        _require(factory, unit.key, f"slot {unit.slots[0]} of {repo.name} is not done")
    made = {number: it for unit in units for number, it in factory.read_made(unit).items()}
    for _, it in sorted(made.items()):
        yield from it.tasks
        yield from it.left_out


def _require(factory: Factory, key: str, what: str) -> None:
    if factory.done.get(key) is None:
        raise IncompleteRunError(f"{what}: run the same command again")


def _deletion_key(task: Task) -> str:
    """Return the same for deletions of the same code: order, white space, tests are left aside."""
    removed = sorted(
        (file.path, "".join(line.split()))
        for file in parse_patch(task.deletion.patch)
        if not is_protected(file.path)
        for hunk in file.hunks
        for sign, line in hunk.lines
        if sign == "-" and line.strip()
    )
    return content_id(task.snapshot.digest, removed)


def _repeated(task: Task, first: Task) -> LeftOut:
    reject = Reject(stage="finalise", reason="duplicate", detail=f"same deletion as {first.id}")
    return LeftOut(subject=task.feature.title, reject=reject)


def _row(repo: Repo, left_out: LeftOut) -> RejectRow:
    return RejectRow(
        schema_version=SCHEMA_VERSION,
        repo=repo.name,
        subject=left_out.subject,
        stage=left_out.reject.stage,
        reason=left_out.reject.reason,
        detail=left_out.reject.detail,
    )


def _attached(outcome: Outcome, factory: Factory) -> list[RunFile]:
    """Describe the snapshots and transcripts that the tasks name."""
    snapshots = {f"snapshots/{task.snapshot.digest}.tar.zst" for task in outcome.tasks}
    transcripts = {f"transcripts/{task.id}.jsonl" for task in outcome.tasks}
    return [describe(factory.settings.out, path) for path in sorted(snapshots | transcripts)]


def _config(repos: Sequence[Repo], factory: Factory) -> dict[str, object]:
    settings = factory.settings
    return {
        "repos": [repo.name for repo in repos],
        **asdict(settings.choice),
        "evidence": settings.evidence,
        "agent": settings.agent,
    }
