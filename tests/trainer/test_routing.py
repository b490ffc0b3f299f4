"""Letters of shapes: T tokens, L layers with a router, K experts of a token."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import MixtralConfig, Qwen2MoeConfig

from tests.trainer.asking import ids_of, request
from trainer.engine import Generated, Request
from trainer.forward import hidden_states
from trainer.generate import LocalEngine
from trainer.model import weights
from trainer.pack import pack_rows
from trainer.records import Experts, Ids, Segment, pad_experts
from trainer.routing import recording, replaying, require_routers, routers
from trainer.scoring import measure_logprobs, score
from trainer.tiny import random_model, tiny_config

torch.set_num_threads(1)

_SMALL = {
    "vocab_size": 256,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def mixtral(*, seed: int = 0) -> Any:
    config = MixtralConfig(intermediate_size=32, num_local_experts=8, sliding_window=None, **_SMALL)
    return random_model(config, seed=seed)


def qwen3_moe(*, seed: int = 0, **changes: object) -> Any:
    config = tiny_config("qwen3_moe")
    config.update(changes)
    return random_model(config, seed=seed)


def deepseek_v3(*, seed: int = 0) -> Any:
    model = random_model(tiny_config("deepseek_v3"), seed=seed)
    router: Any
    for router in routers(model):
        # As training leaves it: a bias that has a say in the choice, and none in the weights.
        router.e_score_correction_bias.copy_(torch.linspace(-0.1, 0.1, router.num_experts))
    return model


MODELS: list[Callable[..., Any]] = [qwen3_moe, deepseek_v3, mixtral]


@torch.no_grad()
def chosen(model: Any, ids: Ids) -> Experts:
    with recording(routers(model)) as found:
        hidden_states(model, pack_rows([ids]))
    return torch.stack(found, dim=1).numpy().astype(np.int16)


def sets(experts: Experts) -> Experts:
    """Return experts in an order that does not tell which is the likelier one."""
    return np.sort(experts, axis=-1)


@pytest.mark.parametrize("make", [*MODELS, lambda: qwen3_moe(norm_topk_prob=False)])
def test_a_model_that_replays_its_own_choices_is_the_same_to_the_bit(
    make: Callable[[], Any],
) -> None:
    model, ids = make(), ids_of(60, seed=1)
    free = hidden_states(model, pack_rows([ids]))
    replayed = hidden_states(model, pack_rows([ids], experts=[chosen(model, ids)]))
    assert torch.equal(free, replayed)


@pytest.mark.parametrize("make", MODELS)
def test_forced_experts_are_those_that_were_noted_and_others_are_free(
    make: Callable[..., Any],
) -> None:
    ids = ids_of(60, seed=1)
    noted, free = chosen(make(seed=0), ids), chosen(make(seed=1), ids)
    assert not np.array_equal(sets(noted), sets(free))
    noted[40:] = -1
    model = make(seed=1)
    with replaying(model, torch.from_numpy(noted)):
        found = chosen(model, ids)
    assert np.array_equal(found[:40], noted[:40])
    # What a free token is given hangs on what the tokens before it have become.
    assert (found[40:] >= 0).all()
    assert np.array_equal(chosen(model, ids), free)


@pytest.mark.parametrize("make", MODELS)
def test_a_router_that_is_forced_still_learns(make: Callable[..., Any]) -> None:
    ids = ids_of(60, seed=1)
    model = make(seed=1)
    packed = pack_rows([ids], experts=[chosen(make(seed=0), ids)])
    hidden_states(model, packed).square().sum().backward()
    router: Any
    for router in routers(model):
        assert router.weight.grad.abs().max() > 0


@pytest.mark.parametrize("make", MODELS)
def test_the_engine_notes_what_the_model_chooses_for_each_token_that_it_read(
    make: Callable[[], Any],
) -> None:
    asked = [wanting(request(ids_of(n, seed=n), seed=n, new=9 + n)) for n in (1, 30, 70, 17)]
    # Two ask at the same context, which is read once.
    asked.append(replace(asked[2], seed=99))
    engine = LocalEngine(make())
    for one, said in zip(asked, engine.generate(asked), strict=True):
        assert said.experts is not None
        read = np.concatenate([one.ids, said.ids])[:-1]
        assert np.array_equal(sets(said.experts), sets(chosen(make(), read)))
        # A later turn goes on from kept keys.
        longer = np.concatenate([read, said.ids[-1:], ids_of(20, seed=3)])
        (later,) = engine.generate([wanting(request(longer))])
        whole = np.concatenate([longer, later.ids])[:-1]
        assert later.experts is not None
        assert np.array_equal(sets(later.experts), sets(chosen(make(), whole)))


def test_what_is_not_wanted_is_not_told() -> None:
    (said,) = LocalEngine(qwen3_moe()).generate([request(ids_of(5, seed=0))])
    assert said.experts is None


def wanting(asked: Request) -> Request:
    return replace(asked, wants_experts=True)


def segment(asked: Request, said: Generated, *, is_replayed: bool) -> Segment:
    start, ids = len(asked.ids), np.concatenate([asked.ids, said.ids])
    assert said.experts is not None
    return Segment(
        ids=ids,
        sampled=np.arange(len(ids)) >= start,
        logprobs=np.concatenate([np.zeros(start, np.float32), said.logprobs]),
        replies=(),
        experts=pad_experts(said.experts, len(ids)) if is_replayed else None,
    )


def mismatch_kl(model: Any, segments: list[Segment]) -> float:
    """Return the KL per token from what sampled to what trains, by the k3 estimator."""
    found = np.concatenate(measure_logprobs(model, segments, temperature=1.0))
    sampled = np.concatenate([it.sampled for it in segments])
    logratio = (found - np.concatenate([it.logprobs for it in segments]))[sampled]
    return float(np.mean(np.expm1(logratio) - logratio))


def test_replay_brings_engine_and_trainer_closer_where_rounding_makes_other_choices() -> None:
    trained, served = qwen3_moe(), qwen3_moe()
    rounded = {name: it.bfloat16().float() for name, it in weights(trained).items()}
    engine = LocalEngine(served)
    engine.sync(rounded, version=1)
    asked = [wanting(request(ids_of(40, seed=n), seed=n, new=60)) for n in range(8)]
    said = engine.generate(asked)
    free, replayed = (
        [segment(*pair, is_replayed=it) for pair in zip(asked, said, strict=True)]
        for it in (False, True)
    )
    differing = [
        not np.array_equal(sets(chosen(trained, one.ids[:-1])), sets(its.experts[:-1]))
        for one, its in zip(free, replayed, strict=True)
        if its.experts is not None
    ]
    assert any(differing)
    assert mismatch_kl(trained, replayed) < mismatch_kl(trained, free)


def test_rows_with_choices_and_rows_without_are_packed_together() -> None:
    model, rows = qwen3_moe(), [ids_of(9, seed=0), ids_of(14, seed=1)]
    forced = np.flip(chosen(model, rows[1]), axis=0).copy()
    apart = [
        hidden_states(model, pack_rows([rows[0]])),
        hidden_states(model, pack_rows([rows[1]], experts=[forced])),
    ]
    together = hidden_states(model, pack_rows(rows, experts=[None, forced]))
    assert torch.allclose(torch.cat(apart), together, atol=1e-5)
    assert not torch.allclose(hidden_states(model, pack_rows(rows)), together, atol=1e-5)


def test_scores_of_a_segment_are_those_of_the_experts_that_it_came_with() -> None:
    model, asked = qwen3_moe(), wanting(request(ids_of(20, seed=0)))
    (said,) = LocalEngine(qwen3_moe(seed=1)).generate([asked])
    free, replayed = (segment(asked, said, is_replayed=it) for it in (False, True))
    first, second = (score(model, [it], temperature=1.0, chunk=64) for it in (free, replayed))
    assert not torch.equal(first.logprobs_T, second.logprobs_T)


@pytest.mark.parametrize(
    "make",
    [
        lambda: random_model(tiny_config("dense"), seed=0),
        lambda: random_model(
            Qwen2MoeConfig(
                moe_intermediate_size=32,
                shared_expert_intermediate_size=32,
                intermediate_size=64,
                num_experts=4,
                **_SMALL,
            ),
            seed=0,
        ),
    ],
    ids=["dense", "a router of another kind"],
)
def test_a_model_whose_choices_cannot_be_replayed_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"^m: rollout.router_replay .* expected one of Deepseek"):
        require_routers(make(), name="m")
    require_routers(qwen3_moe(), name="m")
