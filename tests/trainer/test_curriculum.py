"""Prompts that teach are practised, the others rest, and every rank and every rerun agrees."""

from collections import Counter
from random import Random

import pytest

from tests.trainer.samples import episode
from trainer.curriculum import (
    Curriculum,
    CurriculumConfig,
    Known,
    Outcome,
    outcomes_of,
    repo_of,
)
from trainer.tasks import prompt_at

PROMPTS = tuple(f"repo{number % 3}-{number:012x}" for number in range(30))


def curriculum(**more: object) -> Curriculum:
    config = CurriculumConfig(kind="learnability", **more)
    return Curriculum(prompts=PROMPTS, config=config, group=8, seed=1)


def tried(solved: float) -> Outcome:
    return Outcome(solved=solved, tried=8)


def practised(found: Curriculum, rates: dict[str, float], *, steps: int) -> list[list[str]]:
    """Let a policy of fixed skill work at the picks; return them."""
    picks = []
    for step in range(steps):
        picks.append(found.pick(step, 6))
        draw = Random(step)
        outcomes = {it: tried(sum(draw.random() < rates[it] for _ in range(8))) for it in picks[-1]}
        found.note(step, outcomes)
    return picks


def test_in_turn_is_the_order_of_the_stream() -> None:
    found = Curriculum(prompts=PROMPTS, config=CurriculumConfig(), group=8, seed=3)
    picks = found.pick(2, 4)
    assert picks == [prompt_at(8 + it, PROMPTS, seed=3) for it in range(4)]
    found.note(2, {picks[0]: tried(8)})
    assert found.learned.known == {}
    assert found.measure(2, picks) == {}


def test_what_is_solved_now_and_then_is_practised_most() -> None:
    found = curriculum(retire_after=1000, park_after=1000)
    rates = {it: (0.02, 0.5, 0.98)[number // 10] for number, it in enumerate(PROMPTS)}
    picks = practised(found, rates, steps=60)
    counts = Counter(rates[it] for step in picks[20:] for it in step)
    assert counts[0.5] > 0.6 * counts.total()
    assert found.rate(PROMPTS[0], 60) < 0.25
    assert found.rate(PROMPTS[-1], 60) > 0.75


def test_all_prompts_are_looked_at_sooner_or_later() -> None:
    found = curriculum()
    practised(found, dict.fromkeys(PROMPTS, 0.5), steps=150)
    assert set(found.learned.known) == set(PROMPTS)


def test_what_is_always_solved_is_retired_and_what_never_is_parked_until_it_has_rested() -> None:
    found = curriculum(retire_after=2, park_after=3, revisit=10)
    easy, hard, mixed = PROMPTS[:3]
    for step in range(3):
        found.note(step, {easy: tried(8), hard: tried(0), mixed: tried(7)})
    assert found.is_set_aside(easy, 3)
    assert found.is_set_aside(hard, 3)
    assert not found.is_set_aside(mixed, 3)
    assert not {easy, hard}.intersection(it for step in range(3, 12) for it in found.pick(step, 20))
    told = found.measure(3, found.pick(3, 6))
    assert (told["curriculum/retired"], told["curriculum/parked"]) == (1, 1)
    assert not found.is_set_aside(easy, 12)
    found.note(12, {hard: tried(1)})
    assert not found.is_set_aside(hard, 13)


def test_what_is_learnt_of_some_tells_of_those_that_were_tried_long_ago() -> None:
    found = curriculum()
    found.note(0, {it: tried(4) for it in PROMPTS})
    before = found.rate(PROMPTS[0], 40)
    for step in range(1, 40):
        found.note(step, {it: tried(7) for it in PROMPTS[10:16]})
    assert found.rate(PROMPTS[0], 40) > before + 0.05


@pytest.mark.parametrize(
    ("difficulty", "variance", "solved"), [(5.0, 4.0, 8), (3.0, 9.0, 8), (-4.0, 4.0, 0)]
)
def test_one_group_against_all_that_was_known_is_believed_within_reason(
    difficulty: float, variance: float, solved: float
) -> None:
    found, prompt = curriculum(prompt_drift=0.0), PROMPTS[0]
    known = Known(difficulty=difficulty, variance=variance, step=0, all_solved=0, none_solved=0)
    found.learned.known[prompt] = known
    found.note(1, {prompt: tried(solved)})
    # It moves over the middle, and no further than such a group alone would say.
    assert 0.5 < abs(found.rate(prompt, 1) - (8 - solved) / 8) < 0.97
    assert 0 < found.learned.known[prompt].variance < variance


def test_picks_are_balanced_over_repositories() -> None:
    even = Counter(repo_of(it) for it in curriculum(balance=0.3).pick(0, 9))
    assert even == {"repo0": 3, "repo1": 3, "repo2": 3}


def test_the_same_is_picked_again_and_no_prompt_twice() -> None:
    first, again = curriculum(), curriculum()
    for step in range(5):
        picks = first.pick(step, 10)
        assert picks == again.pick(step, 10)
        assert len(set(picks)) == 10
        outcomes = {it: tried(number % 9) for number, it in enumerate(picks)}
        first.note(step, outcomes)
        again.note(step, dict(reversed(outcomes.items())))
    assert first.learned == again.learned


def test_more_picks_than_prompts_take_all_before_any_comes_again() -> None:
    counts = Counter(curriculum().pick(0, 70))
    assert set(counts) == set(PROMPTS)
    assert set(counts.values()) == {2, 3}


def test_where_nearly_all_rest_those_that_rested_longest_come_back() -> None:
    found = curriculum(retire_after=1, revisit=1000)
    for step, it in enumerate(PROMPTS):
        found.note(step, {it: tried(8)})
    assert set(found.pick(30, 3)) == set(PROMPTS[:3])


def test_tries_without_a_reward_count_for_nothing() -> None:
    episodes = [
        episode("a", 0, 1.0),
        episode("a", 1, 0.0),
        episode("a", 2, None),
        episode("b", 0, None),
        episode("c", 0, 1.7),
    ]
    found = outcomes_of(episodes)
    assert found == {"a": Outcome(solved=1.0, tried=2), "c": Outcome(solved=1.0, tried=1)}


@pytest.mark.parametrize("values", [{"explore": 2}, {"balance": 0}, {"spread": 0}, {"kind": "x"}])
def test_settings_that_make_no_sense_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        CurriculumConfig.model_validate(values)
