"""Say why nothing can be proposed."""

from typing import TypeVar

from pipeline.task.reject import Reject

T = TypeVar("T")


class ProposalError(ValueError):
    """No manifest entry can be proposed; one line that says why and what was expected."""


def accepted(result: T | Reject) -> T:
    """Return a step's result.

    Raises:
        ProposalError: it is a Reject.
    """
    if isinstance(result, Reject):
        raise ProposalError(f"{result.stage}: {result.reason}: {result.detail}")
    return result
