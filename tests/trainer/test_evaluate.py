from pathlib import Path

import pytest

from tests.trainer.toy import PROMPTS, ToyWorld, run_toy, toy_config
from trainer.chat import Chat
from trainer.checkpoint import latest
from trainer.config import TrainConfig
from trainer.engines import open_engine
from trainer.evaluate import Scene, Score, evaluate, line_of, total, wilson, with_model_of
from trainer.model import load_model, load_tokenizer, weights
from trainer.transfer import digest


def scene(config: TrainConfig) -> Scene:
    return Scene(
        world=ToyWorld(),
        prompts=PROMPTS,
        chat=Chat(load_tokenizer(config.model), config.chat),
        engine=open_engine(config),
    )


def measured(config: TrainConfig, folder: Path, *, attempts: int = 2) -> list[Score]:
    told: list[Score] = []
    found = evaluate(config, scene(config), folder=folder, attempts=attempts, report=told.append)
    assert told == found
    return found


def test_every_task_is_tried_and_those_that_are_done_are_kept(tmp_path: Path) -> None:
    first = measured(toy_config(), tmp_path)
    assert [(it.name, it.valid, it.lost) for it in first] == [(it, 2, 0) for it in PROMPTS]
    files = sorted(tmp_path.glob("*.parquet"))
    before = [it.stat().st_mtime_ns for it in files]
    files[-1].unlink()
    assert measured(toy_config(), tmp_path) == first
    assert [it.stat().st_mtime_ns for it in files[:-1]] == before[:-1]
    assert files[-1].exists()


def test_tries_of_another_policy_or_number_are_not_mixed(tmp_path: Path) -> None:
    measured(toy_config(), tmp_path)
    with pytest.raises(ValueError, match="another configuration or model"):
        measured(toy_config(seed=1), tmp_path)
    with pytest.raises(ValueError, match="is not 3 tries at a; expected another --out"):
        measured(toy_config(), tmp_path, attempts=3)


def test_the_model_of_a_checkpoint_is_the_one_that_was_trained(tmp_path: Path) -> None:
    config = toy_config(steps=1)
    trained = run_toy(config, tmp_path).learner.model
    place = latest(tmp_path / "checkpoints")
    assert place is not None
    loaded = load_model(with_model_of(config, place).model, seed=0)
    assert digest(weights(loaded)) == digest(weights(trained))
    with pytest.raises(ValueError, match="expected that of a checkpoint"):
        with_model_of(config, tmp_path)


def test_the_interval_is_that_of_wilson() -> None:
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_scores_add_up_and_lost_tries_are_told_apart() -> None:
    one = Score(name="a", solved=1, valid=2, lost=1, calls=3, fired={"k": 1})
    whole = total([one, one])
    assert whole == Score(name="all", solved=2, valid=4, lost=2, calls=6, fired={"k": 2})
    assert line_of(whole) == "all  solved 2 of 4: 0.500 [0.150, 0.850]  lost 2"
