"""Write down what became of a patch: the Grade with its receipt."""

from dataclasses import dataclass
from importlib.metadata import version

from pipeline.task.receipt import (
    RECEIPT_VERSION,
    Decided,
    Peaks,
    Receipt,
    Runner,
    TestResult,
    Verdict,
    digest_of,
)
from pipeline.task.record import Outcome, Task
from pipeline.task.screen import Reasons, Screened
from pipeline.task.suite import SuiteRun
from pipeline.task.verdict import Judgement, outcomes_of

NOTHING = Screened(kept={}, dropped=(), refused=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What a patch is worth.

    Example: `grade(task, task.deletion.gold_patch, desk=desk).verdict == "solved"`.
    """

    # `tampered`: it was made to look solved; `invalid`: the machine failed, which is no score.
    verdict: Verdict
    # One line: why it is not solved.
    detail: str
    # Expected ids that did not pass, with what they did; empty when nothing was run.
    broken: tuple[tuple[str, Outcome], ...]
    # Paths of the patch that were left alone.
    dropped: tuple[str, ...]
    # (path, reason) of what no honest solver needs.
    refused: Reasons
    num_expected: int
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What is graded, whatever comes of it."""

    task: Task
    patch: str
    # Ids that must pass.
    ids: tuple[str, ...]
    # Name of the sandbox.
    sandbox: str


def write_grade(
    sheet: Sheet,
    verdict: Verdict,
    detail: str,
    *,
    screened: Screened = NOTHING,
    run: SuiteRun | None = None,
    judgement: Judgement | None = None,
) -> Grade:
    """Put a verdict and what led to it into a Grade.

    Args:
        sheet: what was graded.
        verdict: what came of it.
        detail: why it is not solved, in a line.
        screened: what was decided about the patch.
        run: of the suite, if there was one.
        judgement: of the run.
    """
    return Grade(
        verdict=verdict,
        detail=detail,
        broken=judgement.broken if judgement else (),
        dropped=tuple(path for path, _ in screened.dropped),
        refused=screened.refused,
        num_expected=len(sheet.ids),
        receipt=Receipt(
            version=RECEIPT_VERSION,
            task=sheet.task.id,
            snapshot=sheet.task.snapshot.digest,
            environment=sheet.task.environment.digest,
            images=sheet.task.images,
            patch=sheet.patch,
            patch_sha256=digest_of(sheet.patch),
            decisions=_decisions(screened),
            tests=_tests(run, sheet.ids),
            twins=judgement.twins if judgement else (),
            alarms=judgement.alarms if judgement else (),
            forged=run.forged if run else "",
            disagreement=judgement.disagreement if judgement else "",
            runner=Runner(
                pytest=run.runner if run else "",
                regrow=version("regrow"),
                sandbox=sheet.sandbox,
            ),
            peaks=_peaks(run),
            verdict=verdict,
            detail=detail,
        ),
    )


def _decisions(screened: Screened) -> tuple[Decided, ...]:
    kept = (Decided(path=path, decision="kept", reason="") for path in screened.kept)
    dropped = (Decided(path=it, decision="dropped", reason=why) for it, why in screened.dropped)
    refused = (Decided(path=it, decision="refused", reason=why) for it, why in screened.refused)
    return tuple(sorted((*kept, *dropped, *refused), key=lambda it: (it.path, it.decision)))


def _tests(run: SuiteRun | None, ids: tuple[str, ...]) -> tuple[TestResult, ...]:
    found = outcomes_of(run, ids) if run else {}
    return tuple(TestResult(id=key, outcome=outcome) for key, outcome in found.items())


def _peaks(run: SuiteRun | None) -> Peaks:
    if run is None:
        return Peaks(wall_s=0.0, cpu_s=0.0, memory_bytes=0, processes=0)
    return Peaks(
        wall_s=run.finished.wall_s,
        cpu_s=run.finished.cpu_s,
        memory_bytes=run.finished.peak_memory_bytes,
        processes=run.finished.peak_processes,
    )
