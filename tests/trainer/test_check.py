import pytest

from trainer import check
from trainer.check import Checked, check_run, checks_table
from trainer.config import TrainConfig
from trainer.engines import open_engine
from trainer.model import load_model, weights
from trainer.tries import RolloutConfig


def config(kind: str) -> TrainConfig:
    return TrainConfig.model_validate({
        "tasks": "nowhere",
        "model": {"tiny": kind, "device": "cpu"},
    })


@pytest.mark.parametrize("kind", ["dense", "qwen3_moe"])
def test_all_that_a_run_rests_on_holds_on_a_tiny_model(kind: str) -> None:
    found = check_run(config(kind))
    assert [it for it in found if not it.holds] == []
    assert len({it.claim for it in found}) == len(found) == 9


def test_all_of_it_holds_with_replayed_experts_which_a_dense_model_has_not() -> None:
    given = config("qwen3_moe").model_copy(update={"rollout": RolloutConfig(router_replay=True)})
    assert [it for it in check_run(given) if not it.holds] == []
    dense = config("dense").model_copy(update={"rollout": RolloutConfig(router_replay=True)})
    with pytest.raises(ValueError, match=r"tiny dense: rollout\.router_replay"):
        check_run(dense)


def test_an_engine_with_other_weights_is_found_out() -> None:
    given = config("dense")
    model = load_model(given.model, seed=0)
    engine = open_engine(given)
    other = {name: it + 0.05 for name, it in weights(model).items()}
    engine.sync(other, version=1)
    drift = next(it for it in check.measure_all(given, model, engine) if "engine and" in it.claim)
    assert not drift.holds


def test_what_is_no_number_does_not_hold_and_the_table_says_so() -> None:
    bad = Checked(claim="rows packed = rows apart", deviation=float("nan"), tolerance=1.0)
    assert not bad.holds
    assert checks_table([bad]).row_count == 1
