from collections import Counter
from dataclasses import replace
from typing import Any

from tests.trainer.feedback.episodes import call, episode, fault, says
from tests.trainer.feedback.test_targets import CHAT, CONFIG, MANY, siblings
from trainer.feedback.counts import count_feedback, rates
from trainer.feedback.targets import give_feedback

GOOD = episode(says("", call("read_file", "x", path="a.py")), says("Done."))


def counted(episodes: Any) -> dict[str, float]:
    return count_feedback(episodes, give_feedback(episodes, chat=CHAT, config=CONFIG))


def test_what_fired_and_could_be_hinted_at_is_counted_by_kind() -> None:
    spoilt = episode(says("", fault("read_file", path="a.py")), id="0-task.9")
    assert counted([*siblings(MANY, 3), spoilt]) == {
        "replies": 10,
        "fired": 7,
        "fired/unknown_tool": 6,
        "fired/environment_fault": 1,
        "hinted": 6,
        "hinted/unknown_tool": 6,
    }


def test_episodes_that_do_not_count_are_not_counted() -> None:
    failed = replace(MANY, id="0-task.9", reward=None, ending="infra")
    assert counted([*siblings(MANY, 1), failed]) == counted(siblings(MANY, 1))
    assert counted([failed]) == {}


def test_counts_of_two_ranks_add_up_to_the_counts_of_all() -> None:
    ours = siblings(MANY, 2)
    other = [replace(it, id=f"1-{it.id}", group="1-task") for it in siblings(MANY, 3)]
    assert Counter(counted(ours)) + Counter(counted(other)) == Counter(counted([*ours, *other]))


def test_a_rate_tells_how_much_rarer_a_kind_is_in_a_reply() -> None:
    good = [replace(GOOD, id=f"0-task.{n}") for n in range(10, 13)]
    before, now = rates(counted(siblings(MANY, 1))), rates(counted([*siblings(MANY, 1), *good]))
    assert before == {"findings_per_reply": 2 / 3, "rate/unknown_tool": 2 / 3}
    assert now == {"findings_per_reply": 2 / 9, "rate/unknown_tool": 2 / 9}
    assert rates(counted([])) == {}
