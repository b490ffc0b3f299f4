"""Ranks that hold a model together learn what one process learns, and keep it for others."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainer.forked import on_ranks
from tests.trainer.samples import sample, segment, target
from tests.trainer.toy import run_toy, toy_config
from trainer.checkpoint import CheckpointError, latest
from trainer.learner import Learner
from trainer.mesh import MeshConfig
from trainer.model import ModelConfig, load_model, load_tokenizer, weights
from trainer.ranks import RankError, Ranks
from trainer.records import Sample
from trainer.resume import Progress, restore, save
from trainer.spread import OnMeshes
from trainer.tiny import TinyKind

# So large an eps makes AdamW's step nearly linear: else the sign of rounding errors would decide.
LINEAR = {"lr": 0.05, "eps": 1.0}
MUON = {**LINEAR, "kind": "muon", "muon": {"lr": 0.01, "orthogonalize": {"dtype": "float32"}}}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def samples(number: int) -> list[Sample]:
    """Return what a rank has rolled out: some nothing, some much, some with hints."""
    made = [
        segment(number, spans=[(5, 9), (14, 20)], length=24 + number),
        segment(number + 10, spans=[(4, 11)], length=13),
        segment(number + 20, spans=[(6, 8), (10, 13)], length=17),
    ]
    return [
        sample(it, advantage=(-1.0) ** place * (number + 1), targets=[target(it, 0)])
        for place, it in enumerate(made[: number % 4])
    ]


def learner_of(
    kind: TinyKind,
    optimizer: Mapping[str, object],
    ranks: Ranks,
    parallel: Mapping[str, int] | None = None,
) -> Learner:
    config = toy_config(
        model={"tiny": kind, "device": "cpu"},
        optimizer=dict(optimizer),
        objective={"loss": {"kl_coef": 0.1}, "distill": {"weight": 1.0, "teacher": "ema"}},
    )
    model = load_model(ModelConfig(tiny=kind, device="cpu"), seed=0)
    spread = None
    if parallel is not None:
        spread = OnMeshes(ranks, MeshConfig.model_validate(parallel), device="cpu")
    return Learner(
        model,
        objective_config=config.objective,
        optimizer_config=config.optimizer,
        row_tokens=40,
        ranks=ranks,
        spread=spread,
    )


def steps(learner: Learner, numbers: range, *, own: Any) -> dict[str, Any]:
    """Take steps; return what was measured and the weights after them, plain."""
    told = [learner.learn(own(step), step=step) for step in numbers]
    assert not any(it.is_skipped for it in told)
    return {
        "sums": [dict(it.sums) for it in told],
        "norms": [it.grad_norm for it in told],
        "weights": {name: it.detach().numpy() for name, it in learner.weights().items()},
    }


def alone(kind: TinyKind, optimizer: Mapping[str, object], *, world: int) -> dict[str, Any]:
    def own(step: int) -> list[Sample]:
        return [it for rank in range(world) for it in samples(rank + step)]

    return steps(learner_of(kind, optimizer, Ranks()), range(2), own=own)


LAYOUTS: list[tuple[TinyKind, int, dict[str, int], Mapping[str, object]]] = [
    ("dense", 2, {}, LINEAR),
    ("dense", 4, {"dense_replicate": 2, "context": 2}, MUON),
    ("qwen3_moe", 4, {"context": 2, "expert_parallel": 4}, LINEAR),
    ("qwen3_moe", 4, {"dense_replicate": 2, "expert_replicate": 2, "expert_parallel": 2}, MUON),
    ("deepseek_v3", 4, {"context": 4, "expert_parallel": 2}, MUON),
]


@pytest.mark.parametrize(("kind", "world", "parallel", "optimizer"), LAYOUTS, ids=str)
def test_parts_of_a_model_learn_what_the_whole_learns(
    kind: TinyKind, world: int, parallel: dict[str, int], optimizer: Mapping[str, object]
) -> None:
    expected = alone(kind, optimizer, world=world)

    def work(ranks: Ranks) -> dict[str, Any]:
        learner = learner_of(kind, optimizer, ranks, parallel)
        return steps(learner, range(2), own=lambda step: samples(ranks.rank + step))

    for found in on_ranks(world, work):
        assert isinstance(found, dict), found
        assert found["norms"] == pytest.approx(expected["norms"], rel=1e-5)
        for sums, whole in zip(found["sums"], expected["sums"], strict=True):
            assert sums.keys() == whole.keys()
            assert sums == pytest.approx(whole, rel=1e-4, abs=1e-5)
            assert sums["targets"] > 0
            assert sums["kl"] > 0
        assert found["weights"].keys() == expected["weights"].keys()
        for name, it in found["weights"].items():
            torch.testing.assert_close(
                torch.from_numpy(it), torch.from_numpy(expected["weights"][name]), rtol=0, atol=1e-5
            )


def keep(folder: Path, learner: Learner, ranks: Ranks, *, step: int) -> None:
    config = toy_config()
    tokenizer = load_tokenizer(config.model)
    save(
        folder,
        Progress(step=step),
        learner,
        tokenizer=tokenizer,
        config=config.checkpoint,
        ranks=ranks,
    )


SAVED = ("qwen3_moe", 4, {"context": 2, "expert_parallel": 4})
LOADED: list[tuple[int, dict[str, int] | None]] = [
    (4, {"context": 2, "expert_parallel": 4}),
    (2, {"dense_replicate": 2, "expert_parallel": 2}),
    (1, None),
]


@pytest.mark.parametrize("optimizer", [LINEAR, MUON], ids=["adamw", "muon"])
def test_what_ranks_have_saved_others_go_on_from(
    tmp_path: Path, optimizer: Mapping[str, object]
) -> None:
    kind, world, parallel = SAVED

    def shares(ranks: Ranks) -> Any:
        """Deal what four ranks have to as many as there are."""
        return lambda step: [
            it for rank in range(ranks.rank, world, ranks.world) for it in samples(rank + step)
        ]

    def first(ranks: Ranks) -> dict[str, Any]:
        learner = learner_of(kind, optimizer, ranks, parallel)
        steps(learner, range(2), own=shares(ranks))
        keep(tmp_path, learner, ranks, step=2)
        return steps(learner, range(2, 4), own=shares(ranks))

    whole = on_ranks(world, first)[0]["weights"]

    def again(sizes: dict[str, int] | None) -> Any:
        def work(ranks: Ranks) -> dict[str, Any]:
            learner = learner_of(kind, optimizer, ranks, sizes)
            progress = restore(tmp_path, learner)
            assert progress is not None
            assert progress.step == 2
            return steps(learner, range(2, 4), own=shares(ranks))

        return work

    for ranks, sizes in LOADED:
        work = again(sizes)
        found = (on_ranks(ranks, work) if sizes is not None else [work(Ranks())])[0]["weights"]
        for name, it in whole.items():
            if sizes == parallel:
                assert np.array_equal(found[name], it), name
            else:
                np.testing.assert_allclose(found[name], it, rtol=0, atol=1e-5)
    # And so does everybody else's library.
    place = latest(tmp_path)
    assert place is not None
    saved = load_model(ModelConfig(source=str(place / "model"), device="cpu"), seed=0)
    assert weights(saved).keys() == whole.keys()


def test_a_whole_run_on_meshes_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    values = {
        "model": {"tiny": "qwen3_moe", "device": "cpu"},
        "staleness": 1,
        "steps": 3,
    }

    def run(folder: str, **more: object) -> Any:
        def work(ranks: Ranks) -> dict[str, Any]:
            config = toy_config(**{**values, **more}, parallel={"context": 2})
            parts = run_toy(config, tmp_path / folder, ranks=ranks)
            return {name: it.numpy() for name, it in parts.learner.weights().items()}

        return on_ranks(2, work)

    whole = run("whole")
    run("parts", steps=1)
    for found, expected in zip(run("parts"), whole, strict=True):
        assert isinstance(found, dict), found
        for name, it in expected.items():
            assert np.array_equal(found[name], it), name


def test_a_checkpoint_without_its_tensors_is_refused_in_one_line(tmp_path: Path) -> None:
    learner = learner_of("dense", LINEAR, Ranks())
    keep(tmp_path, learner, Ranks(), step=1)
    place = latest(tmp_path)
    assert place is not None
    other = learner_of("qwen3_moe", LINEAR, Ranks())
    with pytest.raises(CheckpointError, match="another model or version: RuntimeError: Missing"):
        restore(tmp_path, other)
    shutil.rmtree(place / "state")
    (place / "manifest.json").write_text('{"files": {}}')
    with pytest.raises(CheckpointError, match="is of another model or version"):
        restore(tmp_path, learner)


def test_meshes_of_one_rank_are_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="parallel on one rank; expected several"):
        OnMeshes(Ranks(), MeshConfig(), device="cpu")


def test_a_rank_that_dies_within_a_step_is_named_by_the_others() -> None:
    def work(ranks: Ranks) -> str:
        learner = learner_of("dense", LINEAR, ranks, {})
        learner.learn(samples(3), step=0)
        if ranks.rank == 1:
            return "gone"
        with pytest.raises(RankError) as caught:
            learner.learn(samples(3), step=1)
        return str(caught.value)

    said, gone = on_ranks(2, work, timeout_s=5.0)
    assert gone == "gone"
    assert said.startswith("step 1, ")
    assert "rank 0 of 2 waits in vain for rank 1 (the norm of the gradient)" in said
