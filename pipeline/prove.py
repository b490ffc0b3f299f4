"""Prove a Task whose Deletion is proven: its gold patch solves it, a stub or nothing does not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.task.changed import changing_suite
from pipeline.task.grade import Desk, Grade, grade, lay_out, outcomes_of
from pipeline.task.patch import apply_patch
from pipeline.task.record import Reject, Task
from pipeline.task.solve_tree import restore_tests, solve_tree
from pipeline.task.stub import RAISES, RETURNS_NOTHING, stub_patch
from pipeline.task.suite import EarlyStop, SuiteRequest, SuiteRun
from pipeline.task.tree import Changes, apply_changes, changes_between, read_tree
from pipeline.validate import Method


def prove_task(task: Task, *, desk: Desk, method: Method = "fast") -> Reject | None:
    """Return why a Task is none, although its Deletion is proven: None when it is one.

    A part of what decides is not shown to a solver. A Task is solved by its gold patch, by the
    grader that will judge every other one. It is not by a stub, whether that raises or returns
    nothing. What a solver is shown fails without a solution and passes with the gold patch.

    The plain method has the gold patch graded by the whole suite. The fast one lays the gold patch
    out as a grade does and finds the Snapshot, byte for byte: what the targets and their twins do
    there was judged by `measure_grading`, what all other tests do there is the Baseline.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: nothing was learnt.
    """
    if not (task.grading.hidden or task.grading.shortened):
        detail = "its tests can be neither hidden nor shortened: a table of what they ask solves it"
        return Reject(stage="validation", reason="nothing_to_hide", detail=detail)
    snapshot = read_tree(desk.tree)
    with changing_suite(desk) as run_changed:
        proof = _Proof(task=task, snapshot=snapshot, run_changed=run_changed)
        reject = proof.judge_shown() or proof.judge_stubs()
    return reject or _judge_gold(task, snapshot, desk=desk, method=method)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proof:
    """A Task on the way to be one."""

    task: Task
    snapshot: Mapping[str, bytes]
    run_changed: Callable[[Changes, SuiteRequest], SuiteRun]

    def judge_shown(self) -> Reject | None:
        """Judge what a solver sees before and after the work."""
        shown = solve_tree(self.task, self.snapshot)
        hidden = set(self.task.grading.hidden)
        visible = tuple(key for key in self.targets if key not in hidden)
        survivors = self.passing(visible, shown)
        if survivors:
            detail = f"{len(survivors)} targets pass on the solve tree, first: {survivors[0]}"
            return Reject(stage="validation", reason="target_survives", detail=detail)
        solved = apply_changes(shown, apply_patch(shown, self.task.deletion.gold_patch))
        lost = set(visible).difference(self.passing(visible, solved))
        if lost:
            detail = (
                f"{len(lost)} targets that are shown do not pass with the gold patch: {min(lost)}"
            )
            return Reject(stage="validation", reason="not_solvable", detail=detail)
        return None

    def judge_stubs(self) -> Reject | None:
        """Refuse targets that all pass when the names are back and nothing is behind them."""
        shown = solve_tree(self.task, self.snapshot)
        stop = EarlyStop(must_pass=self.targets)
        for does, body in (
            ("raises NotImplementedError", RAISES),
            ("does nothing", RETURNS_NOTHING),
        ):
            patch = stub_patch(self.task, self.snapshot, body=body)
            tree = restore_tests(self.snapshot, apply_changes(shown, apply_patch(shown, patch)))
            if len(self.passing(self.targets, tree, stop=stop)) == len(self.targets):
                detail = f"a stub that {does} passes all {len(self.targets)} targets"
                return Reject(stage="validation", reason="stub_solves", detail=detail)
        return None

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(it.id for it in self.task.evidence.fail_to_pass)

    def passing(
        self, ids: tuple[str, ...], tree: Mapping[str, bytes], *, stop: EarlyStop | None = None
    ) -> list[str]:
        """Return the ids that pass on a tree, with the plugins of a grade."""
        request = SuiteRequest(ids=ids, plugins=self.task.grading.plugins, stop=stop)
        run = self.run_changed(changes_between(self.snapshot, tree), request)
        return [key for key, outcome in outcomes_of(run, ids).items() if outcome == "passed"]


def _judge_gold(
    task: Task, snapshot: Mapping[str, bytes], *, desk: Desk, method: Method
) -> Reject | None:
    if method == "fast":
        laid = lay_out(task, task.deletion.gold_patch, snapshot, desk=desk)
        if isinstance(laid, Grade):
            return Reject(stage="validation", reason="not_restored", detail=laid.detail)
        if laid.tree == snapshot:
            return None
    result = grade(task, task.deletion.gold_patch, desk=desk)
    if result.verdict == "invalid":
        raise SandboxBrokenError(result.detail)
    if result.verdict == "solved":
        return None
    return Reject(stage="validation", reason="not_restored", detail=result.detail)
