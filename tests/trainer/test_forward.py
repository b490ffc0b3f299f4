from functools import cache
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from trainer.forward import hidden_states, lm_head
from trainer.model import ModelConfig, load_model
from trainer.pack import pack_rows
from trainer.records import Ids
from trainer.tiny import VOCABULARY, TinyKind

torch.set_num_threads(1)

KINDS = get_args(TinyKind)
ATTENTION = ("sdpa", "eager")
LENGTHS = (11, 1, 30, 2, 17)


@cache
def load(kind: TinyKind, attention: str = "sdpa", experts: str = "grouped_mm") -> PreTrainedModel:
    experts = "grouped_mm" if kind == "dense" else experts
    return load_model(ModelConfig(tiny=kind, attention=attention, experts=experts), seed=1)


def draw(seed: int = 0) -> list[Ids]:
    generator = np.random.default_rng(seed)
    return [generator.integers(VOCABULARY, size=length) for length in LENGTHS]


def packed_logits(model: PreTrainedModel, rows: list[Ids]) -> list[Tensor]:
    """Return the logits of each row, from one packed forward."""
    packed = pack_rows(list(rows))
    logits = hidden_states(model, packed) @ lm_head(model).T
    return list(logits.split([len(ids) for ids in rows]))


def separate_logits(model: PreTrainedModel, rows: list[Ids]) -> list[Tensor]:
    """Return the logits of each row, as transformers computes them for it alone."""
    return [model(input_ids=torch.from_numpy(ids)[None]).logits[0] for ids in rows]


def padded_logits(model: PreTrainedModel, rows: list[Ids]) -> list[Tensor]:
    """Return the logits of each row, from one batch padded at the right."""
    mask = torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]
    ids = torch.zeros(mask.shape, dtype=torch.long)
    ids[mask] = torch.from_numpy(np.concatenate(rows))
    logits = model(input_ids=ids, attention_mask=mask.long(), use_cache=False).logits
    return [row[: len(ids)] for row, ids in zip(logits, rows, strict=True)]


def gradient(model: PreTrainedModel, logits: list[Tensor]) -> Tensor:
    """Return the gradient, in one vector, of a loss in which every logit weighs differently."""
    loss = sum((row * torch.linspace(-1, 1, row.numel()).view(row.shape)).sum() for row in logits)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    parts = torch.autograd.grad(loss, parameters, materialize_grads=True)
    return torch.cat([part.flatten() for part in parts])


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_packed_rows_are_padded_rows_are_separate_rows(kind: TinyKind, attention: str) -> None:
    model, rows = load(kind, attention), draw()
    packed = packed_logits(model, rows)
    packed_gradient = gradient(model, packed)
    for other in (separate_logits(model, rows), padded_logits(model, rows)):
        for ours, true in zip(packed, other, strict=True):
            torch.testing.assert_close(ours, true, rtol=0, atol=1e-5)
        true_gradient = gradient(model, other)
        off = (packed_gradient - true_gradient).norm() / true_gradient.norm()
        assert off.item() < 1e-6


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_another_token_in_one_row_leaves_the_logits_of_the_others_bit_equal(
    kind: TinyKind, attention: str
) -> None:
    # Grouped multiplication rounds by how many tokens an expert has; this takes each for itself.
    model, rows = load(kind, attention, "batched_mm"), draw()
    with torch.no_grad():
        before = packed_logits(model, rows)
        for changed in range(len(rows)):
            others = [ids.copy() for ids in rows]
            others[changed][len(others[changed]) // 2] ^= 1
            for number, logits in enumerate(packed_logits(model, others)):
                assert torch.equal(logits, before[number]) == (number != changed)


@pytest.mark.parametrize("kind", KINDS)
def test_no_gradient_at_all_flows_from_one_row_to_another(kind: TinyKind) -> None:
    model = load(kind)
    packed = pack_rows(list(draw()))
    embedded = model.get_input_embeddings()(packed.input_ids_1T).detach().requires_grad_()
    states = model.base_model(
        inputs_embeds=embedded, position_ids=packed.position_ids_1T, use_cache=False
    ).last_hidden_state[0]
    for start, end in zip(packed.starts, packed.starts[1:], strict=False):
        [reached] = torch.autograd.grad(states[start:end].pow(3).sum(), embedded, retain_graph=True)
        assert (reached[0, start:end].abs().sum(-1) > 0).all()
        assert not reached[0, :start].any()
        assert not reached[0, end:].any()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dense"])
def test_all_ways_to_multiply_experts_agree(kind: TinyKind) -> None:
    rows = draw()
    grouped = load(kind, "sdpa", "grouped_mm")
    true = packed_logits(grouped, rows)
    true_gradient = gradient(grouped, true)
    for experts in ("eager", "batched_mm"):
        model = load(kind, "sdpa", experts)
        assert model.get_experts_implementation()[""] == experts
        logits = packed_logits(model, rows)
        torch.testing.assert_close(torch.cat(logits), torch.cat(true), rtol=0, atol=1e-5)
        off = (gradient(model, logits) - true_gradient).norm() / true_gradient.norm()
        assert off.item() < 1e-6


def test_the_head_is_what_turns_hidden_states_into_logits() -> None:
    model = load("dense")
    assert lm_head(model) is model.get_input_embeddings().weight
