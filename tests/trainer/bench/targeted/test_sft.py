import pytest

from trainer.bench.targeted.policy import PolicyConfig
from trainer.bench.targeted.sft import NoGapError, SftConfig, make

# Learns next to nothing, at once.
QUICK = SftConfig(
    policy=PolicyConfig(num_layers=1, num_heads=2, width=16, hidden=16),
    clean_error=1.1,
    least_error=0.0,
    most_error=1.0,
    most_hinted_error=1.0,
    max_steps=3,
    check_every=1,
    num_checked=4,
    num_episodes=2,
)


def test_a_policy_that_never_copies_is_an_error_and_gets_no_habits() -> None:
    told: list[str] = []
    with pytest.raises(NoGapError, match=r"^after 3 clean steps: error 1\.00, .* below 0\.1$"):
        make(QUICK.model_copy(update={"clean_error": 0.1}), tell=told.append)
    assert [line.split(":")[0] for line in told] == [f"{step} clean steps" for step in (1, 2, 3)]


def test_a_policy_whose_error_leaves_the_range_is_an_error_that_says_what_was_measured() -> None:
    with pytest.raises(NoGapError, match=r"^after 3 steps of noise: error 1\.00, .* 0 to 0\.5, "):
        make(QUICK.model_copy(update={"most_error": 0.5}), tell=[].append)


def test_a_gap_must_stand_for_some_checks() -> None:
    told: list[str] = []
    make(QUICK.model_copy(update={"checks_in_range": 2}), tell=told.append)
    assert [line.split(":")[0] for line in told] == [
        "1 clean steps",
        "1 steps of noise",
        "2 steps of noise",
    ]
    with pytest.raises(NoGapError, match="4 times in a row"):
        make(QUICK.model_copy(update={"checks_in_range": 4}), tell=[].append)


def test_the_same_settings_make_the_same_policy() -> None:
    once, again = (make(QUICK, tell=[].append) for _ in range(2))
    assert once[1] == again[1]
    assert once[0].state_dict().keys() == again[0].state_dict().keys()
    for name, tensor in once[0].state_dict().items():
        assert tensor.equal(again[0].state_dict()[name])
