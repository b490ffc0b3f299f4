"""A model on many ranks is the model on one: loss, logits, gradients and their norm."""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

from tests.trainer.forked import on_ranks
from trainer.context_parallel import part_of
from trainer.forward import hidden_states, lm_head
from trainer.mesh import MeshConfig, make_meshes, place_of
from trainer.pack import Packed, pack_rows
from trainer.parallel import hidden_part, parallelize, sharded_norm, whole_head
from trainer.ranks import Ranks
from trainer.tiny import TinyKind, random_model, tiny_config

# What the tokens of a step are, whatever the layout.
NUM_TOKENS = 200


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def tiny(kind: TinyKind) -> Any:
    return random_model(tiny_config(kind), seed=0)


def rows_of(data: int) -> Packed:
    """Return what one context group works at: three rows, of lengths that no rank count divides."""
    lengths = (9, 14, 6 + data)
    drawn = [np.random.default_rng(100 * data + n).integers(0, 256, n) for n in lengths]
    return pack_rows(drawn)


def labels_of(packed: Packed) -> Tensor:
    """Return what each token predicts; the last one of a row nothing."""
    labels = packed.input_ids_1T[0].roll(-1)
    labels[torch.tensor(packed.starts[1:]) - 1] = -100
    return labels


def loss_of(states: Tensor, head: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(states @ head.T, labels, reduction="sum") / NUM_TOKENS


def alone(kind: TinyKind, *, num_data: int) -> tuple[float, dict[str, Tensor], list[Tensor]]:
    model, loss, logits = tiny(kind), 0.0, []
    for packed in map(rows_of, range(num_data)):
        states = hidden_states(model, packed)
        part = loss_of(states, lm_head(model), labels_of(packed))
        part.backward()
        loss += part.item()
        logits.append((states @ lm_head(model).T).detach())
    gradients = {name: it.grad for name, it in model.named_parameters() if it.grad is not None}
    return loss, gradients, logits


def together(kind: TinyKind, config: MeshConfig, ranks: Ranks) -> dict[str, Any]:
    model, meshes = tiny(kind), make_meshes(config, world=ranks.world)
    parallelize(model, meshes)
    packed = rows_of(place_of(ranks.rank, config, world=ranks.world).data)
    states, part = hidden_part(model, packed, meshes=meshes)
    head = whole_head(model)
    loss = loss_of(states, head, labels_of(packed)[part.start : part.end])
    loss.backward()
    total = loss.detach().double()
    dist.all_reduce(total)
    # Torch would tell of each gather that it takes two steps.
    logging.disable(logging.WARNING)
    gradients = {name: it.grad.full_tensor().numpy() for name, it in model.named_parameters()}
    return {
        "loss": float(total),
        "logits": (states @ head.T).detach().numpy(),
        "span": (part.start, part.end),
        "norm": sharded_norm(list(model.parameters()), meshes),
        "gradients": gradients if ranks.is_first else {},
    }


def deviation(found: Any, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest number."""
    largest = expected.abs().max()
    return float((torch.from_numpy(found) - expected).abs().max() / largest)


LAYOUTS: list[tuple[TinyKind, int, dict[str, int]]] = [
    ("dense", 2, {}),
    ("dense", 4, {"dense_replicate": 4}),
    ("dense", 8, {"dense_replicate": 2, "context": 4}),
    ("qwen3_moe", 2, {"expert_parallel": 2}),
    ("qwen3_moe", 4, {"expert_replicate": 4}),
    ("qwen3_moe", 4, {"dense_replicate": 2, "expert_parallel": 2}),
    ("qwen3_moe", 8, {"context": 2, "expert_parallel": 8}),
    ("qwen3_moe", 8, {"dense_replicate": 4, "context": 2, "expert_parallel": 4}),
    (
        "qwen3_moe",
        8,
        {"dense_replicate": 2, "context": 2, "expert_replicate": 4, "expert_parallel": 2},
    ),
    ("deepseek_v3", 4, {"context": 4, "expert_replicate": 2, "expert_parallel": 2}),
    ("deepseek_v3", 8, {"context": 2, "expert_parallel": 8}),
    ("deepseek_v3", 8, {"dense_replicate": 8, "expert_replicate": 2, "expert_parallel": 4}),
]


@pytest.mark.parametrize(("kind", "world", "sizes"), LAYOUTS, ids=str)
def test_loss_logits_gradients_and_norm_are_those_of_one_process(
    kind: TinyKind, world: int, sizes: dict[str, int]
) -> None:
    config = MeshConfig.model_validate(sizes)
    num_data = world // config.context
    loss, gradients, logits = alone(kind, num_data=num_data)
    found = on_ranks(world, lambda ranks: together(kind, config, ranks))
    norm = float(torch.cat([it.flatten().double() for it in gradients.values()]).norm())
    for rank, it in enumerate(found):
        assert isinstance(it, dict), it
        assert it["loss"] == pytest.approx(loss, rel=1e-6)
        assert it["norm"] == pytest.approx(norm, rel=1e-6)
        own = logits[place_of(rank, config, world=world).data][slice(*it["span"])]
        assert deviation(it["logits"], own) < 2e-6
    assert found[0]["gradients"].keys() == gradients.keys()
    for name, gradient in found[0]["gradients"].items():
        assert deviation(gradient, gradients[name]) < 2e-6, name


def test_ranks_whose_experts_nobody_chose_stay_in_step() -> None:
    config = MeshConfig(expert_parallel=4)

    def biased() -> Any:
        model = tiny("deepseek_v3")
        for name, it in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                # Only experts of the first rank.
                it.copy_(torch.tensor([9.0, 9.0, *[0.0] * (len(it) - 2)]))
        return model

    def work(ranks: Ranks) -> float:
        model, meshes = biased(), make_meshes(config, world=ranks.world)
        parallelize(model, meshes)
        states, _ = hidden_part(model, rows_of(0), meshes=meshes)
        states.square().sum().backward()
        return sharded_norm(list(model.parameters()), meshes)

    model = biased()
    hidden_states(model, rows_of(0)).square().sum().backward()
    gradients = [it.grad for it in model.parameters() if it.grad is not None]
    norm = float(torch.cat([it.flatten().double() for it in gradients]).norm())
    # Each of the four works at the same rows.
    assert on_ranks(4, work) == pytest.approx([4 * norm] * 4, rel=1e-5)


def test_the_parts_of_a_row_are_the_row_and_see_what_it_sees() -> None:
    packed = rows_of(1)
    parts = [part_of(packed, rank=rank, world=4) for rank in range(4)]
    length = packed.starts[-1]
    assert [it.start for it in parts][1:] == [it.end for it in parts][:-1]
    assert (parts[0].start, parts[-1].end) == (0, length)
    ids = torch.cat([it.input_ids_1S for it in parts], dim=1)[:, :length]
    assert torch.equal(ids, packed.input_ids_1T)
    mask = torch.cat([it.mask() for it in parts])
    assert mask.diagonal().all()
    for start, end in zip(packed.starts, packed.starts[1:], strict=False):
        assert mask[start:end, start:end].equal(torch.ones(end - start, end - start).tril().bool())
        assert not mask[start:end, :start].any()
        assert not mask[start:end, end:].any()


def test_experts_that_the_ranks_cannot_share_are_refused_in_one_line() -> None:
    config = tiny_config("qwen3_moe")
    config.update({"num_experts": 6})

    def work(ranks: Ranks) -> None:
        meshes = make_meshes(MeshConfig(expert_parallel=4), world=ranks.world)
        parallelize(random_model(config, seed=0), meshes)

    expected = "ValueError: model.layers.0.mlp.experts: 6 experts on expert_parallel 4; expected"
    for said in on_ranks(4, work):
        assert said == f"{expected} a divisor"
