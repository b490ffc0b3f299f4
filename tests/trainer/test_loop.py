import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.trainer.forked import on_ranks
from tests.trainer.samples import sample, segment
from tests.trainer.toy import PROMPTS, run_toy, toy_config, toy_parts
from trainer.checkpoint import latest
from trainer.episode_shards import read_entries
from trainer.model import weights
from trainer.ranks import Ranks
from trainer.tasks import prompt_at
from trainer.trackers import read_metrics
from trainer.transfer import digest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def numbers(folder: Path) -> list[dict[str, float]]:
    """Return what was measured, clocks apart."""
    return [
        {name: it for name, it in line.items() if not name.endswith("_s")}
        for line in read_metrics(folder)
    ]


def groups(folder: Path) -> list[tuple[int, str, int]]:
    """Return step, group and number of each Episode that is kept."""
    files = sorted((folder / "episodes").iterdir())
    return [
        (it.step, it.episode.group, it.episode.number)
        for path in files
        for it in read_entries(path)
    ]


def all_tries(steps: int, *, prompts: int = 2, group: int = 3) -> list[tuple[int, str, int]]:
    return [
        (position // prompts, f"{position:08}-{prompt_at(position, PROMPTS, seed=0)}", number)
        for position in range(steps * prompts)
        for number in range(group)
    ]


def test_a_run_leaves_metrics_episodes_and_a_checkpoint_and_is_the_same_again(
    tmp_path: Path,
) -> None:
    digests = [digest(weights(run_toy(toy_config(), tmp_path / it).learner.model)) for it in "ab"]
    assert digests[0] == digests[1]
    assert numbers(tmp_path / "a") == numbers(tmp_path / "b")
    assert groups(tmp_path / "a") == all_tries(4)
    place = latest(tmp_path / "a" / "checkpoints")
    assert place is not None
    assert place.name == "step-000004"
    first, *_, last = numbers(tmp_path / "a")
    assert first["grad_norm"] > 0
    assert first["mismatch_kl"] < 1e-8
    assert last["episodes"] == last["valid"] == 6


def test_experts_are_replayed_in_every_turn_and_kept_with_the_episodes(tmp_path: Path) -> None:
    rollout = {**toy_config().rollout.model_dump(), "router_replay": True}
    given = toy_config(steps=2, rollout=rollout, model={"tiny": "qwen3_moe", "device": "cpu"})
    run_toy(given, tmp_path)
    kept = [
        it.episode
        for path in sorted((tmp_path / "episodes").iterdir())
        for it in read_entries(path)
    ]
    for found in (it for episode in kept for it in episode.segments):
        assert found.experts is not None
        # Two layers, two experts of a token; the last token went through no layer.
        assert found.experts.shape == (len(found.ids), 2, 2)
        assert (found.experts[:-1] >= 0).all()
        assert (found.experts[-1] == -1).all()
    assert numbers(tmp_path)[0]["mismatch_kl"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("staleness", [0, 1])
@pytest.mark.parametrize("teacher", ["ema", "frozen"])
def test_a_run_that_is_stopped_and_goes_on_is_the_same_to_the_bit(
    tmp_path: Path, staleness: int, teacher: str
) -> None:
    values = {"staleness": staleness, "objective": {"distill": {"teacher": teacher}}}
    whole = run_toy(toy_config(**values), tmp_path / "whole")
    run_toy(toy_config(**values, steps=2), tmp_path / "parts")
    again = run_toy(toy_config(**values), tmp_path / "parts")
    assert digest(weights(again.learner.model)) == digest(weights(whole.learner.model))
    assert numbers(tmp_path / "parts") == numbers(tmp_path / "whole")
    assert groups(tmp_path / "parts") == all_tries(4)


LEARNABILITY = {"kind": "learnability", "retire_after": 1}


@pytest.mark.parametrize("staleness", [0, 1])
def test_a_run_that_chooses_what_teaches_goes_on_to_the_bit(tmp_path: Path, staleness: int) -> None:
    values = {"curriculum": LEARNABILITY, "staleness": staleness, "steps": 5}
    run_toy(toy_config(**values), tmp_path / "whole")
    run_toy(toy_config(**values | {"steps": 2}), tmp_path / "parts")
    again = run_toy(toy_config(**values), tmp_path / "parts")
    assert numbers(tmp_path / "parts") == numbers(tmp_path / "whole")
    assert groups(tmp_path / "parts") == groups(tmp_path / "whole")
    tried = {name.split("-", 1)[1] for _, name, _ in groups(tmp_path / "whole")}
    assert set(again.curriculum.learned.known) == tried
    assert "curriculum/rate" in numbers(tmp_path / "whole")[0]


def test_ranks_choose_the_same_prompts_as_one_process(tmp_path: Path) -> None:
    values = {"curriculum": LEARNABILITY, "prompts": 4, "steps": 3, "optimizer": {"lr": 0.0}}
    run_toy(toy_config(**values), tmp_path / "alone")
    on_ranks(2, lambda ranks: run_toy(toy_config(**values), tmp_path / "ranks", ranks=ranks) and 1)
    assert sorted(groups(tmp_path / "ranks")) == sorted(groups(tmp_path / "alone"))


MUON = {"kind": "muon", "lr": 0.01, "muon": {"lr": 0.01, "orthogonalize": {"dtype": "float32"}}}


def test_a_run_with_muon_goes_on_to_the_bit(tmp_path: Path) -> None:
    whole = run_toy(toy_config(optimizer=MUON), tmp_path / "whole")
    run_toy(toy_config(optimizer=MUON, steps=2), tmp_path / "parts")
    again = run_toy(toy_config(optimizer=MUON), tmp_path / "parts")
    assert digest(weights(again.learner.model)) == digest(weights(whole.learner.model))
    assert numbers(tmp_path / "parts") == numbers(tmp_path / "whole")


def test_episodes_are_of_the_weights_before_the_step_or_one_step_older(tmp_path: Path) -> None:
    run_toy(toy_config(staleness=1), tmp_path / "behind")
    run_toy(toy_config(), tmp_path / "even")
    assert [it["version"] for it in numbers(tmp_path / "behind")] == [0, 0, 1, 2]
    assert [it["version"] for it in numbers(tmp_path / "even")] == [0, 1, 2, 3]


def test_a_run_that_is_killed_again_and_again_ends_as_if_nothing_had_been(tmp_path: Path) -> None:
    values = {"steps": 6, "staleness": 1}
    whole = run_toy(toy_config(**values), tmp_path / "whole")
    folder = tmp_path / "killed"
    for number in range(5):
        command = [sys.executable, "-m", "tests.trainer.toy", str(folder), json.dumps(values)]
        with subprocess.Popen(command, cwd=ROOT) as run:
            wait_for(folder, lines=number + 1)
            # During a save, between steps, in the rollouts: each time a little later.
            time.sleep(0.03 * number)
            run.send_signal(signal.SIGKILL)
    again = run_toy(toy_config(**values), folder)
    assert digest(weights(again.learner.model)) == digest(weights(whole.learner.model))
    assert numbers(folder) == numbers(tmp_path / "whole")
    assert groups(folder) == all_tries(6)


def wait_for(folder: Path, *, lines: int) -> None:
    path = folder / "metrics.jsonl"
    while not path.exists() or path.read_text().count("\n") < lines:
        time.sleep(0.005)


# So large an eps makes AdamW's step nearly linear: else the sign of rounding errors would decide.
LINEAR = {"lr": 0.5, "eps": 1.0}


@pytest.mark.parametrize(
    ("world", "optimizer"), [(2, LINEAR), (4, LINEAR), (2, {**MUON, **LINEAR})], ids=str
)
def test_ranks_learn_what_one_process_learns(
    tmp_path: Path, world: int, optimizer: dict[str, object]
) -> None:
    values = {"steps": 2, "prompts": 3, "optimizer": optimizer}
    alone = run_toy(toy_config(**values), tmp_path / "alone")

    def work(ranks: Ranks) -> dict[str, list[float]]:
        parts = run_toy(toy_config(**values), tmp_path / "ranks", ranks=ranks)
        return {name: it.flatten().tolist() for name, it in weights(parts.learner.model).items()}

    for found in on_ranks(world, work):
        for name, expected in weights(alone.learner.model).items():
            torch.testing.assert_close(
                torch.tensor(found[name]), expected.flatten(), rtol=1e-6, atol=1e-6
            )
    one, other = numbers(tmp_path / "alone"), numbers(tmp_path / "ranks")
    for alone_line, line in zip(one, other, strict=True):
        assert line["grad_norm"] == pytest.approx(alone_line["grad_norm"], rel=1e-5)
        assert line["tokens"] == alone_line["tokens"]
        assert line["reward"] == pytest.approx(alone_line["reward"])
    assert sorted(groups(tmp_path / "ranks")) == all_tries(2, prompts=3)


def test_a_step_whose_loss_is_no_number_changes_no_weight_and_is_told() -> None:
    learner = toy_parts(toy_config()).learner
    good = sample(segment(0, spans=[(5, 9)], length=12), advantage=1.0)
    before = digest(weights(learner.model))
    assert learner.learn([replace(good, advantage=math.nan)], step=0).is_skipped
    assert digest(weights(learner.model)) == before
    assert not learner.learn([good], step=1).is_skipped
    assert digest(weights(learner.model)) != before
