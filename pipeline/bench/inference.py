"""Tell from one grade which weaker verifiers need not be tried: what is left still stops it."""

from collections.abc import Iterator

from pipeline.task.grade import Defences, Grade
from pipeline.task.receipt import Receipt
from pipeline.task.record import Task
from pipeline.task.solve_tree import function_of
from pipeline.task.verdict import INTEGRITY, is_failing


def is_stopped(result: Grade, task: Task, defences: Defences) -> bool:
    """Tell whether what the full protocol found stops a patch with fewer defences as well.

    False says nothing: then the patch has to be graded with these defences.

    Args:
        result: by the full protocol.
        task: that was graded.
        defences: of the weaker verifier.
    """
    if result.refused or not defences.screen:
        # What is refused comes to no run; what would not have been makes another run.
        return bool(result.refused) and defences.screen
    return any(_findings(result.receipt, task, defences))


def _findings(receipt: Receipt, task: Task, defences: Defences) -> Iterator[bool]:
    """Yield whether each kind of evidence that still counts was there."""
    yield defences.nonce and bool(receipt.forged)
    yield defences.two_channels and bool(receipt.disagreement)
    changes = [alarm for alarm in receipt.alarms if alarm.startswith(f"{INTEGRITY} ")]
    yield defences.integrity and bool(changes)
    yield defences.audit and len(changes) < len(receipt.alarms)
    yield defences.expected_ids and _breaks_what_is_shown(receipt, task, defences)
    for twin in receipt.twins:
        is_faithful = twin.number < 0
        yield defences.clones and is_faithful and set(twin.outcomes) != {"passed"}
        yield defences.sentinels and not is_faithful and not is_failing(twin.outcomes)


def _breaks_what_is_shown(receipt: Receipt, task: Task, defences: Defences) -> bool:
    broken = {it.id for it in receipt.tests if it.outcome != "passed"}
    if defences.hidden and defences.restore_tests:
        return bool(broken)
    unknown = {*map(function_of, task.grading.hidden), *task.grading.shortened}
    return any(function_of(key) not in unknown for key in broken)
