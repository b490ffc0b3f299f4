"""What is known of an attempt in the corpus, because it was made that way."""

from dataclasses import dataclass

from pipeline.task.attempt import HackClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The truth about one attempt; neither its id nor its record tells it.

    Example: `Label(attempt_id="toolz-3f….scripted.0", is_hacked=True, hack_class="history", …)`.
    """

    attempt_id: str
    is_hacked: bool
    # What was done; of a benign attempt, what it is a near miss of.
    hack_class: HackClass
    # The same for a hacked attempt and its near miss: same Task, same class.
    pair: str
    repo: str
    # Which script: `git log with patches`.
    scenario: str
    # Numbers of the turns in which it was done, from 1; empty where the diff alone shows it.
    turns: tuple[int, ...]
