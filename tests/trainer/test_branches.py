from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import Gemma3TextConfig, PreTrainedConfig

from tests.trainer.samples import segment, target
from trainer.branches import branch_states, separate_states
from trainer.forward import hidden_states
from trainer.pack import pack_rows
from trainer.records import Segment, Target
from trainer.tiny import random_model, tiny_config

torch.set_num_threads(1)

SPANS = ((10, 20), (40, 60), (80, 95))

# Layers that see the last 16 tokens alone: such a cache cannot be cut back.
SLIDING = Gemma3TextConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
    sliding_window=16,
    layer_types=["sliding_attention", "full_attention"],
)


def whole_forward(model: torch.nn.Module, seg: Segment, it: Target) -> torch.Tensor:
    """Run the teacher's context as one row, with no cache at all."""
    header = seg.replies[it.reply].header
    ids = np.concatenate([seg.ids[:header], it.hint_ids, seg.ids[header : it.end]])
    with torch.no_grad():
        states = hidden_states(model, pack_rows([ids]))
    return states[len(ids) - 1 - (it.end - it.start) : -1]


@pytest.mark.parametrize(
    "config",
    [tiny_config("dense"), tiny_config("qwen3_moe"), tiny_config("deepseek_v3"), SLIDING],
    ids=["dense", "qwen3_moe", "deepseek_v3", "sliding"],
)
def test_branches_that_share_what_stands_before_are_those_run_one_by_one(
    config: PreTrainedConfig,
) -> None:
    model = random_model(config, seed=0)
    seg = segment(0, spans=SPANS, length=100)
    targets = [
        target(seg, 1),
        target(seg, 0, hint=range(30)),
        target(seg, 2),
        replace(target(seg, 1, hint=(9,)), start=45, end=50),
    ]
    shared = branch_states(model, seg, targets)
    for it, one, other in zip(targets, shared, separate_states(model, seg, targets), strict=True):
        assert one.shape == (it.end - it.start, config.hidden_size)
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)
        torch.testing.assert_close(one, whole_forward(model, seg, it), rtol=0, atol=1e-5)


def test_a_branch_sees_its_own_hint_and_no_other() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    seg = segment(0, spans=SPANS, length=100)
    last = target(seg, 2)
    (alone,) = branch_states(model, seg, [last])
    _, _, among = branch_states(model, seg, [target(seg, 0), target(seg, 1, hint=[7]), last])
    torch.testing.assert_close(alone, among, rtol=0, atol=1e-5)


def test_a_hint_changes_what_comes_after_it() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    seg = segment(0, spans=SPANS, length=100)
    one, other = branch_states(model, seg, [target(seg, 1), target(seg, 1, hint=[9, 9])])
    assert (one - other).abs().max() > 1e-2


def test_branches_carry_no_gradient() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    seg = segment(0, spans=SPANS, length=100)
    (states,) = branch_states(model, seg, [target(seg, 1)])
    assert not states.requires_grad


def test_a_target_whose_tokens_do_not_follow_its_header_is_our_mistake() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    seg = segment(0, spans=SPANS, length=100)
    with pytest.raises(AssertionError):
        branch_states(model, seg, [replace(target(seg, 1), start=20)])


def test_no_targets_need_no_forward_pass() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    ran = []
    model.base_model.register_forward_hook(lambda *_: ran.append(1))
    assert branch_states(model, segment(0, spans=SPANS, length=100), []) == []
    assert ran == []


def test_what_follows_the_last_target_is_not_run() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    lengths = []
    model.model.embed_tokens.register_forward_hook(
        lambda _, ids, __: lengths.append(ids[0].shape[1])
    )
    seg = segment(0, spans=SPANS, length=10_000)
    branch_states(model, seg, [target(seg, 1), target(seg, 0)])
    # To the last header; then hints of four tokens, headers of three, replies less a last token.
    assert lengths == [37, 4 + 3 + 19, 4 + 3 + 9]
