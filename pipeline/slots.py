"""Fill the slots of a Repo: try the candidates of each in order until one is a Task."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial

from pipeline.desk import Folders, reopen_desk
from pipeline.feature import LeftOut
from pipeline.make import draft_task, finish_task
from pipeline.pool import POOL_SIZE, Candidate, EvidenceMode, first_fit, judge
from pipeline.prepare import Prepared
from pipeline.sandbox.protocol import Sandbox
from pipeline.selection import not_tried
from pipeline.task.grade import Desk
from pipeline.task.record import Evidence, Feature, Task
from pipeline.task.reject import Reject

# The candidates of a slot, in the order in which they are tried.
Slot = Sequence[Feature]
Verdict = Evidence | Reject
Judge = Callable[[Sequence[Candidate]], Sequence[Verdict]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a slot came to."""

    # One or none.
    tasks: tuple[Task, ...]
    # Candidates tried before it, and why they failed; candidates that it made needless.
    left_out: tuple[LeftOut, ...]


# A slot at work: yields one candidate after another, is sent its Evidence or why there is none.
Filling = Generator[Candidate, Verdict, Made]


def deal_units(slots: Sequence[Slot], *, mode: EvidenceMode) -> tuple[tuple[int, ...], ...]:
    """Deal slots to units of work, by their numbers.

    With pooled evidence a unit takes several slots: those whose first candidates have no test in
    common, as others cannot share a run.
    """
    tests = [frozenset(slot[0].tests) for slot in slots]

    def can_share(unit: Sequence[int], number: int) -> bool:
        return all(tests[number].isdisjoint(tests[it]) for it in unit)

    size = POOL_SIZE if mode == "pooled" else 1
    return first_fit(range(len(slots)), can_share, size=size)


def fill_slots(
    prepared: Prepared,
    slots: Sequence[Slot],
    *,
    folders: Folders,
    sandbox: Sandbox,
    seed: int,
    mode: EvidenceMode = "individual",
) -> tuple[Made, ...]:
    """Try the candidates of each slot in order until one is a Task; return what each came to.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: the machine failed, nothing is decided.
    """
    desk = reopen_desk(
        prepared.snapshot,
        prepared.environment,
        command=prepared.repo.test,
        folders=folders,
        sandbox=sandbox,
    )
    fill = partial(_fill, prepared=prepared, desk=desk, folders=folders, seed=seed)
    return _in_rounds(
        [fill(slot) for slot in slots],
        judge=partial(judge, mode=mode, baseline=prepared.baseline, desk=desk),
    )


def _fill(slot: Slot, *, prepared: Prepared, desk: Desk, folders: Folders, seed: int) -> Filling:
    left_out: list[LeftOut] = []
    for number, feature in enumerate(slot):
        result = yield from _try(feature, prepared=prepared, desk=desk, folders=folders, seed=seed)
        if isinstance(result, Task):
            detail = f"its slot made {result.id}"
            spare = (not_tried(it, detail) for it in slot[number + 1 :])
            return Made(tasks=(result,), left_out=(*left_out, *spare))
        left_out.append(LeftOut(subject=feature.title, reject=result))
    return Made(tasks=(), left_out=tuple(left_out))


def _try(
    feature: Feature, *, prepared: Prepared, desk: Desk, folders: Folders, seed: int
) -> Generator[Candidate, Verdict, Task | Reject]:
    """Do as `make_task` does, but have another one validate what is deleted."""
    draft = draft_task(feature, prepared=prepared, desk=desk)
    if isinstance(draft, Reject):
        return draft
    verdict = yield draft.candidate
    if isinstance(verdict, Reject):
        return verdict
    return finish_task(draft, verdict, desk=desk, folders=folders, seed=seed)


def _in_rounds(fillings: Sequence[Filling], *, judge: Judge) -> tuple[Made, ...]:
    """Let each slot at work name its next candidate, judge those together, and so on."""
    made: dict[int, Made] = {}
    verdicts: dict[int, Verdict | None] = dict.fromkeys(range(len(fillings)))
    while verdicts:
        steps = {number: _go_on(fillings[number], it) for number, it in verdicts.items()}
        made |= {number: it for number, it in steps.items() if isinstance(it, Made)}
        asked = {number: it for number, it in steps.items() if isinstance(it, Candidate)}
        verdicts = dict(zip(asked, judge(tuple(asked.values())), strict=True))
    return tuple(made[number] for number in range(len(fillings)))


def _go_on(filling: Filling, verdict: Verdict | None) -> Candidate | Made:
    try:
        return next(filling) if verdict is None else filling.send(verdict)
    except StopIteration as stop:
        made: Made = stop.value
        return made
