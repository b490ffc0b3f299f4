"""What became of everything that is no Task: the records, and the reasons that there are."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectRow:
    """What became of everything that is not a Task; a row of the reject shards."""

    schema_version: int
    repo: str
    # What was rejected: a repo's name or a feature's title.
    subject: str
    stage: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A step's answer when it has no result: a verdict about its input, never about our machine."""

    # The step that gave up; see `STAGES`.
    stage: str
    # From the closed vocabulary of `REASONS`.
    reason: str
    # One line: what was found, what was expected.
    detail: str

    def __post_init__(self) -> None:
        """Hold every reject to the vocabulary."""
        assert self.reason in REASONS[self.stage], f"{self.stage}: unknown reason {self.reason!r}"


REASONS: dict[str, frozenset[str]] = {
    "fetch": frozenset({
        "unreachable",
        "wrong_hash",
        "no_such_version",
        "no_such_commit",
        "unsafe_archive",
        "no_python",
    }),
    "environment": frozenset({"unresolvable", "no_interpreter", "install_failed"}),
    "baseline": frozenset({
        "no_tests",
        "red",
        "aborted",
        "wall",
        "cpu",
        "memory",
        "processes",
        "disk",
        "output",
    }),
    "trace": frozenset({
        "empty",
        "differs",
        "aborted",
        "wall",
        "cpu",
        "memory",
        "processes",
        "disk",
        "output",
    }),
    "feature": frozenset({
        "no_test_reaches_it",
        "reached_at_import",
        "reached_by_too_many_tests",
        "used_elsewhere",
        "used_at_import",
        "too_small",
        "too_large",
        "not_foldable",
        "nothing_to_hide",
    }),
    "selection": frozenset({"not_tried", "overlaps", "not_wanted"}),
    "deletion": frozenset({
        "not_foldable",
        "used_elsewhere",
        "does_not_parse",
        "used_at_import",
        "does_not_collect",
        "named_by_packaging",
        "undefined_name",
        "target_survives",
        "out_of_turns",
    }),
    "validation": frozenset({
        "target_survives",
        "others_break",
        "flaky_target",
        "only_own_doctests",
        "not_restored",
        "not_solvable",
        "stub_solves",
        "weak_tests",
        "nothing_to_hide",
        "unprotected_target",
        "wall",
        "cpu",
        "memory",
        "processes",
        "disk",
        "output",
    }),
    "instruction": frozenset({"gives_code_away"}),
    "leaks": frozenset({"body", "signature", "fetchable", "unread"}),
    "finalise": frozenset({"duplicate"}),
}

STAGES = tuple(REASONS)
