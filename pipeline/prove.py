"""Prove a Task whose Deletion is proven: its gold patch solves it, a stub or nothing does not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.task.changed import changing_suite
from pipeline.task.grade import Desk, Grade, grade, lay_out, outcomes_of
from pipeline.task.patch import apply_patch, is_protected
from pipeline.task.record import Task
from pipeline.task.reject import Reject
from pipeline.task.solve_tree import function_of, restore_tests, solve_tree
from pipeline.task.stub import RAISES, RETURNS_NOTHING, stub_tree
from pipeline.task.suite import EarlyStop, SuiteRequest, SuiteRun
from pipeline.task.tree import Changes, apply_changes, changes_between, read_tree
from pipeline.validate import Method

# Targets that a stub is shown to first.
NUM_QUICK = 3


def prove_task(task: Task, *, desk: Desk, method: Method = "fast") -> Reject | None:
    """Return why a Task is none, although its Deletion is proven: None when it is one.

    A part of what decides is not shown to a solver. A Task is solved by its gold patch, by the
    grader that will judge every other one. It is not by a stub, whether that raises or returns
    nothing. What a solver is shown fails without a solution and passes with the gold patch.

    The plain method has the gold patch graded by the whole suite. The fast one lays the gold patch
    out as a grade does and finds the Snapshot, byte for byte: what the targets and their twins do
    there was judged by `measure_grading`, what all other tests do there is the Baseline. And it
    asks again whether what is shown fails only where the tests that failed were not the same:
    functions that are hidden whole stand alone.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: nothing was learnt.
    """
    if not (task.grading.hidden or task.grading.shortened):
        detail = "its tests can be neither hidden nor shortened: a table of what they ask solves it"
        return Reject(stage="validation", reason="nothing_to_hide", detail=detail)
    snapshot = read_tree(desk.tree)
    with changing_suite(desk) as run_changed:
        proof = _Proof(
            task=task,
            snapshot=snapshot,
            shown=solve_tree(task, snapshot),
            run_changed=run_changed,
        )
        is_known = method == "fast" and not _are_tests_changed(task)
        reject = None if is_known else proof.refuse_survivors()
        reject = reject or proof.judge_solved() or proof.judge_stubs()
    return reject or _judge_gold(task, snapshot, desk=desk, method=method)


def _are_tests_changed(task: Task) -> bool:
    """Tell whether a test that is shown differs from the one that the Evidence is of."""
    return bool(task.grading.shortened) or any(map(is_protected, task.deletion.paths))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proof:
    """A Task on the way to be one."""

    task: Task
    snapshot: Mapping[str, bytes]
    # The solve tree.
    shown: Mapping[str, bytes]
    run_changed: Callable[[Changes, SuiteRequest], SuiteRun]

    def refuse_survivors(self) -> Reject | None:
        """Refuse targets that a solver sees pass before the work.

        A part of a test that was cut short may, while something else that is shown fails.
        """
        survivors = self.passing(self.visible, self.shown)
        shortened = set(self.task.grading.shortened)
        odd = [key for key in survivors if function_of(key) not in shortened]
        if not odd and (not self.visible or len(survivors) < len(self.visible)):
            return None
        detail = f"{len(survivors)} targets pass on the solve tree, first: {survivors[0]}"
        return Reject(stage="validation", reason="target_survives", detail=detail)

    def judge_solved(self) -> Reject | None:
        """Refuse targets that a solver does not see pass after the work."""
        patch = self.task.deletion.gold_patch
        solved = apply_changes(self.shown, apply_patch(self.shown, patch))
        lost = set(self.visible).difference(self.passing(self.visible, solved))
        if not lost:
            return None
        detail = f"{len(lost)} targets that are shown do not pass with the gold patch: {min(lost)}"
        return Reject(stage="validation", reason="not_solvable", detail=detail)

    def judge_stubs(self) -> Reject | None:
        """Refuse targets that all pass when the names are back and nothing is behind them."""
        for does, body in (
            ("raises NotImplementedError", RAISES),
            ("does nothing", RETURNS_NOTHING),
        ):
            stub = stub_tree(self.task, self.shown, body=body)
            if self._pass(self.quick, stub) and self._pass(self.targets, stub):
                detail = f"a stub that {does} passes all {len(self.targets)} targets"
                return Reject(stage="validation", reason="stub_solves", detail=detail)
        return None

    def _pass(self, ids: tuple[str, ...], solved: Mapping[str, bytes]) -> bool:
        """Tell whether tests pass, all of them, as a grade runs them."""
        tree = restore_tests(self.snapshot, solved)
        return len(self.passing(ids, tree, stop=EarlyStop(must_pass=ids))) == len(ids)

    @property
    def quick(self) -> tuple[str, ...]:
        """A few targets of one module, which mostly are enough to see that a stub is none."""
        first = self.targets[0].partition("::")[0]
        return tuple(it for it in self.targets if it.partition("::")[0] == first)[:NUM_QUICK]

    @property
    def visible(self) -> tuple[str, ...]:
        hidden = set(self.task.grading.hidden)
        return tuple(key for key in self.targets if key not in hidden)

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
