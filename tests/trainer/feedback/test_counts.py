from dataclasses import replace
from typing import Any

from rich.console import Console

from tests.trainer.feedback.episodes import call, episode, says
from tests.trainer.feedback.test_targets import CHAT, CONFIG, MANY, siblings
from trainer.feedback.counts import add, count, counts_table, recurrence
from trainer.feedback.targets import give_feedback

GOOD = episode(says("", call("read_file", "x", path="a.py")), says("Done."))


def counted(episodes: Any, passed: Any = None):
    feedback = give_feedback(episodes, chat=CHAT, config=CONFIG)
    return count(episodes, feedback, passed=passed)


def test_what_fired_was_hinted_became_a_target_and_passed_is_counted_by_kind() -> None:
    (it,) = counted(siblings(MANY, 3), passed={"unknown_tool": 2.0})
    assert (it.kind, it.num_replies, it.num_fired, it.num_hinted) == ("unknown_tool", 9, 6, 6)
    assert (it.num_targets, it.num_passed) == (4, 2)
    assert it.rate == 6 / 9


def test_episodes_that_do_not_count_are_not_counted() -> None:
    failed = replace(MANY, id="0-task.9", reward=None, ending="infra")
    assert counted([*siblings(MANY, 1), failed])[0].num_replies == 3


def test_counts_of_two_ranks_add_up_to_the_counts_of_all() -> None:
    ours = siblings(MANY, 2)
    other = [replace(it, id=f"1-{it.id}", group="1-task") for it in siblings(MANY, 3)]
    assert add(counted(ours), counted(other)) == counted([*ours, *other])
    assert add((), counted(ours)) == counted(ours)


def test_recurrence_is_how_much_rarer_a_kind_is_in_a_reply() -> None:
    (before,) = counted(siblings(MANY, 1))
    good = [replace(GOOD, id=f"0-task.{n}") for n in range(10, 13)]
    (now,) = counted([*siblings(MANY, 1), *good])
    assert recurrence(now, [before]) == (2 / 9) / (2 / 3)
    assert recurrence(now, []) is None


def test_the_table_has_a_row_a_kind_with_the_share_that_passed() -> None:
    (before,) = counted(siblings(MANY, 1))
    now = counted(siblings(MANY, 3), passed={"unknown_tool": 3.0})
    console = Console(width=100)
    with console.capture() as capture:
        console.print(counts_table(now, before=[before]))
    row = next(line for line in capture.get().splitlines() if "unknown_tool" in line)
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["unknown_tool", "6", "6", "4", "3 (75%)", "1.00x"]
