from typing import Any

import numpy as np
import pytest
import torch
from transformers import MistralConfig

from tests.trainer.asking import ids_of, plainly, request
from trainer.engine import EngineError, Generated, Request
from trainer.forward import hidden_states, lm_head
from trainer.generate import LocalConfig, LocalEngine
from trainer.head import token_logprobs
from trainer.invariant import MIN_ROWS
from trainer.model import weights
from trainer.pack import pack_rows
from trainer.tiny import TinyKind, random_model, tiny_config

torch.set_num_threads(1)

KINDS: list[TinyKind] = ["dense", "qwen3_moe", "deepseek_v3"]
# One token in sixteen: many messages end early, at other lengths.
STOP = tuple(range(0, 256, 16))


def tiny(kind: TinyKind = "dense", *, seed: int = 1) -> Any:
    return random_model(tiny_config(kind), seed=seed)


def mixed() -> list[Request]:
    """Contexts of other lengths, temperatures and ends; two ask at the same context."""
    temperatures, lengths = [1.0, 0.0, 0.7, 1.3], [1, 30, 200, 17, 64, 5]
    asked = [
        request(ids_of(it, seed=it), temperature=temperatures[n % 4], stop=STOP, new=9 + n, seed=n)
        for n, it in enumerate(lengths)
    ]
    return [*asked, request(asked[2].ids, seed=9), request(asked[2].ids, seed=10, new=1)]


def same(first: Generated, second: Generated) -> bool:
    """Tell whether two answers are equal to the bit."""
    return (
        np.array_equal(first.ids, second.ids)
        and np.array_equal(first.logprobs, second.logprobs)
        and first.stop == second.stop
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_with_kept_keys_says_what_the_plain_loop_says(kind: TinyKind) -> None:
    asked = mixed()
    for one, said in zip(asked, LocalEngine(tiny(kind)).generate(asked), strict=True):
        ids, logprobs = plainly(tiny(kind), one)
        assert said.ids.tolist() == ids
        assert said.logprobs.tolist() == pytest.approx(logprobs, abs=1e-5)
        assert said.stop == ("end" if ids[-1] in one.stop_ids else "length")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_on_policy_the_ratio_is_1(kind: TinyKind, temperature: float) -> None:
    model = tiny(kind)
    asked = [
        request(ids_of(20 + n, seed=n), seed=n, temperature=temperature, new=40) for n in range(3)
    ]
    said = LocalEngine(tiny(kind)).generate(asked)
    rows = [np.concatenate([one.ids, it.ids]) for one, it in zip(asked, said, strict=True)]
    with torch.no_grad():
        hidden_TD = hidden_states(model, pack_rows(list(rows)))
        logprobs_T = token_logprobs(
            hidden_TD[:-1],
            lm_head(model),
            torch.from_numpy(np.concatenate(rows))[1:],
            temperature=temperature,
        )
    ends = np.cumsum([len(ids) for ids in rows])
    for it, end in zip(said, ends, strict=True):
        ratios = np.exp(logprobs_T[end - 1 - len(it.ids) : end - 1].numpy() - it.logprobs)
        assert np.abs(ratios - 1).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_the_company_of_a_request_does_not_change_what_is_said(kind: TinyKind) -> None:
    asked = mixed()
    together = LocalEngine(tiny(kind)).generate(asked)
    for one, said in zip(asked, together, strict=True):
        (alone,) = LocalEngine(tiny(kind)).generate([one])
        assert alone.ids.tolist() == said.ids.tolist()
        np.testing.assert_allclose(alone.logprobs, said.logprobs, atol=1e-5)


def talk(engine: LocalEngine, *, forget: bool = False, apart: bool = False) -> list[Generated]:
    """Three conversations of three turns, with contexts on both sides of a grain."""
    contexts = [ids_of(length, seed=length) for length in (40, 505, 760)]
    answers = []
    for turn in range(3):
        asked = [
            request(context, seed=10 * turn + n, stop=STOP) for n, context in enumerate(contexts)
        ]
        if forget:
            engine.close()
        said = [engine.generate([one])[0] for one in asked] if apart else engine.generate(asked)
        answers += said
        contexts = [
            np.concatenate([context, it.ids, ids_of(5 + n, seed=turn)])
            for n, (context, it) in enumerate(zip(contexts, said, strict=True))
        ]
    return answers


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="sums in an order of MKL's")
@pytest.mark.parametrize("kind", KINDS)
def test_neither_company_nor_kept_keys_change_a_bit_on_cpu(kind: TinyKind) -> None:
    said = talk(LocalEngine(tiny(kind)))
    assert all(map(same, said, talk(LocalEngine(tiny(kind)), forget=True)))
    assert all(map(same, said, talk(LocalEngine(tiny(kind)), apart=True)))


@pytest.mark.parametrize(
    "config",
    [LocalConfig(batch_bytes=1), LocalConfig(cache_bytes=0), LocalConfig(prefill_tokens=16)],
    ids=["one at a time", "nothing kept", "read in pieces"],
)
def test_memory_bounds_do_not_change_what_is_said(config: LocalConfig) -> None:
    said, bounded = (talk(LocalEngine(tiny(), it)) for it in (None, config))
    assert [it.ids.tolist() for it in said] == [it.ids.tolist() for it in bounded]


def num_read(engine: LocalEngine, asked: list[Request]) -> int:
    """Count the tokens that go through the model until the first ones are drawn."""
    counts: list[int] = []
    embedding = engine._model.get_input_embeddings()
    hook = embedding.register_forward_hook(lambda _, args, __: counts.append(args[0].numel()))
    engine.generate(asked)
    hook.remove()
    return sum(counts)


def test_only_the_new_tokens_of_a_context_are_read_and_a_shared_prompt_once() -> None:
    engine, prompt = LocalEngine(tiny()), ids_of(400, seed=0)
    engine.generate([request([1], new=1)])
    first = [request(prompt, seed=n, new=1) for n in range(4)]
    assert num_read(engine, first) == 400
    later = request(np.concatenate([prompt, ids_of(30, seed=1)]), new=1)
    assert num_read(engine, [later]) == 2 * MIN_ROWS
    other = request(np.concatenate([prompt[:100], ids_of(16, seed=2)]), new=1)
    assert num_read(engine, [other]) == MIN_ROWS


def test_after_a_sync_the_engine_says_what_the_new_model_says() -> None:
    asked, new = mixed(), tiny(seed=2)
    engine = LocalEngine(tiny())
    old = engine.generate(asked)
    engine.sync(weights(new), version=3)
    said, expected = engine.generate(asked), LocalEngine(new).generate(asked)
    assert [it.ids.tolist() for it in said] == [it.ids.tolist() for it in expected]
    assert [it.ids.tolist() for it in said] != [it.ids.tolist() for it in old]
    assert ({it.version for it in old}, {it.version for it in said}) == ({0}, {3})


@pytest.mark.parametrize("spoil", ["missing", "unknown", "shape"])
def test_weights_of_another_model_are_refused_whole(spoil: str) -> None:
    engine, new = LocalEngine(tiny()), weights(tiny(seed=2))
    name = "model.layers.1.mlp.up_proj.weight"
    match spoil:
        case "missing":
            del new[name]
        case "unknown":
            new["model.layers.7.mlp.up_proj.weight"] = new[name]
        case "shape":
            new[name] = new[name][:-1]
    asked = mixed()[:2]
    before = engine.generate(asked)
    with pytest.raises(EngineError, match=r"layers\.[17]\.mlp\.up_proj"):
        engine.sync(new, version=1)
    assert all(map(same, before, engine.generate(asked)))
    assert engine.version == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (request([]), "request 1: ids .*expected at least one"),
        (request([1, -1]), "request 1: ids .*from 0"),
        (request([1, 264]), "request 1: ids .*below 264"),
        (request([1], new=0), "request 1: 0 new tokens"),
        (request([1], temperature=-1), "request 1: .*temperature -1"),
        (request([1] * 32760), "request 1: 32760 ids and 24 new tokens; the model takes 32768"),
    ],
)
def test_what_cannot_be_answered_is_said(asked: Request, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LocalEngine(tiny()).generate([request([1]), asked])


def test_weights_that_have_become_no_numbers_are_a_failure_of_the_engine() -> None:
    engine = LocalEngine(tiny())
    engine.sync({name: it * torch.nan for name, it in weights(tiny()).items()}, version=7)
    with pytest.raises(EngineError, match="weights of version 7 give no finite"):
        engine.generate([request([1, 2])])


def test_nothing_asked_is_nothing_said() -> None:
    assert LocalEngine(tiny()).generate([]) == []


def test_a_model_that_does_not_look_at_its_whole_context_is_refused() -> None:
    config = MistralConfig(
        vocab_size=264,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        sliding_window=16,
    )
    with pytest.raises(ValueError, match=r"mistral: .* found sliding_attention"):
        LocalEngine(random_model(config, seed=0))
