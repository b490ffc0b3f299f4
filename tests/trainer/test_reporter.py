from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.samples import episode, segment
from tests.trainer.toy import run_toy, toy_config
from trainer.config import ConfigError
from trainer.feedback.targets import Feedback
from trainer.learner import Learnt
from trainer.loop import Step
from trainer.objective import Denominators
from trainer.records import Episode, Finding
from trainer.reporter import count, line_of, measure, require_same
from trainer.roll import Rolled

SUMS = {"mismatch_kl": 0.8, "entropy": 160.0, "kl": 6.0, "kl_tokens": 12.0}
FAULT = Finding(
    segment=0, reply=0, kind="unknown_tool", start=5, end=9, evidence="call: g", severity=1.0
)


def played() -> list[Episode]:
    one = segment(0, spans=[(5, 9), (14, 20)], length=20)
    made = [episode("0-a", number, reward) for number, reward in enumerate([1.0, 0.0, 0.5])]
    done = [
        replace(it, verdict=verdict, segments=(one,))
        for it, verdict in zip(made, ["solved", "unsolved", "unsolved"], strict=True)
    ]
    return [*done, episode("0-a", 3, None)]


def step(episodes: list[Episode], **learnt: Any) -> Step:
    feedback = {
        it.id: Feedback(findings=(FAULT,) if it.reward == 0 else (), hinted=(), targets={})
        for it in episodes
    }
    given = {
        "sums": SUMS,
        "denominators": Denominators(tokens=80, target_tokens=12),
        "grad_norm": 0.25,
        "lr": 1e-3,
        "is_skipped": False,
    }
    return Step(
        number=4,
        rolled=Rolled(episodes=tuple(episodes), feedback=feedback, canaries=()),
        advantages={},
        learnt=Learnt(**given | learnt),
        canary_error=0.5,
        picked={"curriculum/rate": 0.4},
        version=3,
        rollout_s=1.0,
        learn_s=2.0,
    )


def test_an_episode_of_which_nothing_was_learnt_is_counted_and_left_out_of_the_mean() -> None:
    made = step(played())
    counted = count(made)
    assert (counted["episodes"], counted["valid"], counted["reward"]) == (4, 3, 1.5)
    assert (counted["ended/finished"], counted["ended/infra"]) == (3, 1)
    assert (counted["verdict/solved"], counted["verdict/unsolved"]) == (1, 2)
    assert measure(made, counted)["reward"] == 0.5


def test_counts_of_ranks_add_up_to_those_of_one() -> None:
    whole, parts = played(), [step(played()[:1]), step(played()[1:])]
    one, other = (count(it) for it in parts)
    added = {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}
    assert added == count(step(whole))


def test_findings_are_told_by_kind_and_per_reply() -> None:
    made = step(played())
    numbers = measure(made, count(made))
    assert (numbers["fired/unknown_tool"], numbers["findings_per_reply"]) == (1, 1 / 6)


def test_sums_of_the_policy_are_told_per_sampled_token_and_those_of_hints_as_sums() -> None:
    made = step(played())
    numbers = measure(made, count(made))
    assert {name: numbers[name] for name in SUMS} == {
        "mismatch_kl": 0.01,
        "entropy": 2.0,
        "kl": 6.0,
        "kl_tokens": 12.0,
    }


def test_a_step_without_a_valid_episode_has_numbers_too() -> None:
    made = step(
        [episode("0-a", 0, None)], sums={}, denominators=Denominators(tokens=0, target_tokens=0)
    )
    numbers = measure(made, count(made))
    assert (numbers["reward"], numbers["tokens"], numbers["mismatch_kl"]) == (0, 0, 0)
    assert line_of(made, numbers, num_steps=9).endswith("lost 1")


@pytest.mark.parametrize("is_skipped", [False, True])
def test_the_line_of_a_step_says_whether_it_was_skipped(is_skipped: bool) -> None:
    made = step(played(), is_skipped=is_skipped)
    line = line_of(made, measure(made, count(made)), num_steps=9)
    assert line.startswith("step 5/9  reward 0.500  solved 1 of 4  tokens 80  found 1  hinted 0")
    assert ("SKIPPED" in line) == is_skipped
    assert "\n" not in line


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "begun"
    run_toy(toy_config(steps=1), folder)
    return folder


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("seed 0, not 1", {"seed": 1}),
        ("group 3, not 4", {"group": 4}),
        ("prompts 2, not 1", {"prompts": 1}),
        ("model.tiny dense, not qwen3_moe", {"model": {"tiny": "qwen3_moe", "device": "cpu"}}),
        ("optimizer.lr 0.01, not 0.5", {"optimizer": {"lr": 0.5}}),
        ("repair.", {"repair": {"tries": 2}}),
        ("judge.", {"judge": {"url": "http://localhost:1", "model": "m"}}),
    ],
)
def test_a_run_goes_on_with_no_other_configuration(
    begun: Path, name: str, values: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=f"{begun}: was begun with {name}"):
        require_same(toy_config(**{"steps": 1} | values), begun)


def test_what_changes_no_step_may_change_when_a_run_goes_on(begun: Path) -> None:
    changed = {
        "steps": 9,
        "checkpoint": {"every": 3},
        "trackers": {"names": []},
        "engine": {"http": {"url": "http://localhost:1", "model": "m", "weights_folder": "w"}},
    }
    require_same(toy_config(**changed), begun)


def test_a_folder_without_a_checkpoint_takes_any_configuration(begun: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((begun / "config.json").read_text())
    require_same(toy_config(seed=1), tmp_path)
