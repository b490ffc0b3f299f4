import random

from trainer.bench.targeted.arm_run import ArmResult
from trainer.bench.targeted.claims import (
    Results,
    claims,
    interval,
    real_claims,
    rows,
    start_claims,
)
from trainer.bench.targeted.gap import Play


def some_play(error: float, *, reward: float = 0.9) -> Play:
    return Play(error=error, hinted_error=0.05, reward=reward, any_error=0.5, calls=10.0)


def ended(*errors: float, reward: float = 0.9) -> list[ArmResult]:
    return [
        ArmResult(
            final=some_play(error, reward=reward),
            errors=(error,),
            rewards=(reward,),
            rollout_s=1.0,
            rl_s=1.0,
            teacher_s=0.0,
        )
        for error in errors
    ]


def results(*, hinted: list[ArmResult]) -> Results:
    return {
        ("habits", "rl"): ended(0.2, 0.2, 0.1),
        ("habits", "kl"): hinted,
        ("habits", "kl_other"): ended(0.3),
        ("far", "rl"): ended(0.9),
        ("far", "negative"): ended(0.9),
        ("far", "kl"): ended(0.3),
    }


def holds(these: Results) -> list[bool]:
    return [claim.holds for claim in claims(these)]


def test_an_interval_holds_the_median_nineteen_times_in_twenty() -> None:
    normal = random.Random(0).gauss
    for num in (6, 9, 15, 40):
        ends = [interval([normal(0.0, 1.0) for _ in range(num)]) for _ in range(4000)]
        assert sum(low <= 0 <= high for low, high in ends) >= 0.94 * len(ends)
    # And is no wider than that takes.
    assert interval(range(15)) == (3, 11)


def test_each_seed_is_held_against_reward_alone_of_the_same_seed() -> None:
    least = claims(results(hinted=ended(0.1, 0.06, 0.03)))[1]
    assert least.figure == 1 - 0.1 / 0.2
    assert holds(results(hinted=ended(0.1, 0.06, 0.03))) == [True] * 5


def test_one_seed_below_the_interval_and_a_reward_that_fell_each_fail_a_claim_of_their_own() -> (
    None
):
    assert holds(results(hinted=ended(0.19, 0.06, 0.03))) == [True, False, True, True, True]
    assert holds(results(hinted=ended(0.1, 0.06, 0.03, reward=0.8)))[2] is False


def test_an_arm_that_was_run_from_fewer_seeds_is_held_against_those() -> None:
    by_other = claims(results(hinted=ended(0.1, 0.06, 0.03)))[3]
    assert round(by_other.figure, 6) == -0.5


def test_a_policy_outside_the_gap_fails() -> None:
    assert all(claim.holds for claim in start_claims(some_play(0.4)))
    assert not start_claims(some_play(0.3))[0].holds
    assert not start_claims(some_play(0.6))[1].holds


def test_a_real_model_that_could_not_be_had_is_said_to_be_not_measured() -> None:
    for claim in real_claims("pip does not find it"):
        assert "(not measured: pip does not find it)" in claim.claim
        assert not claim.holds


def test_the_table_has_a_row_for_each_arm_of_each_world() -> None:
    table = rows(results(hinted=ended(0.1, 0.06, 0.03)))
    assert [row[:2] for row in table] == list(results(hinted=ended(0.1)))
