import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from trainer.canary import Canary, TeacherCollapsedError, canary_errors
from trainer.distill import DistillConfig
from trainer.teacher import Teacher
from trainer.tiny import random_model, tiny_config

torch.set_num_threads(1)


def canary(seed: int) -> Canary:
    draw = np.random.default_rng(seed)
    return Canary(context_ids=draw.integers(0, 64, 20), good_ids=draw.integers(0, 64, 5))


def brute_force(model: PreTrainedModel, one: Canary) -> float:
    ids = torch.from_numpy(np.concatenate([one.context_ids, one.good_ids]))[None]
    with torch.no_grad():
        logp_TV = model(input_ids=ids, use_cache=False).logits[0].float().log_softmax(-1)
    logprobs = [logp_TV[19 + number, token].item() for number, token in enumerate(one.good_ids)]
    return float(1 - np.exp(np.mean(logprobs)))


def test_the_error_is_what_is_missing_from_the_probability_of_good_tokens() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    canaries = [canary(0), canary(1)]
    expected = [brute_force(model, one) for one in canaries]
    assert canary_errors(model, canaries) == pytest.approx(expected, abs=1e-6)


def test_no_canaries_are_refused() -> None:
    with pytest.raises(ValueError, match="no canaries, expected at least one"):
        canary_errors(random_model(tiny_config("dense"), seed=0), [])


def learn(model: PreTrainedModel, one: Canary) -> None:
    """Train until the good tokens are near certain."""
    ids = torch.from_numpy(np.concatenate([one.context_ids, one.good_ids]))[None]
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        logits_NV = model(input_ids=ids, use_cache=False).logits[0, 19:-1]
        torch.nn.functional.cross_entropy(logits_NV, ids[0, 20:]).backward()
        optimizer.step()
        optimizer.zero_grad()


def test_a_live_teacher_that_forgets_is_stopped_and_a_frozen_one_is_not_touched() -> None:
    model, one = random_model(tiny_config("dense"), seed=0), canary(0)
    learn(model, one)
    live = Teacher(model, DistillConfig(teacher="live", canary_bound=0.3))
    frozen = Teacher(model, DistillConfig(teacher="frozen", canary_bound=0.3))
    assert live.check([one]) == frozen.check([one]) < 0.2
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    with pytest.raises(TeacherCollapsedError, match=r"teacher live: error 1\.000 on 1 canaries"):
        live.check([one])
    assert frozen.check([one]) < 0.2


def test_more_canaries_that_are_harder_do_not_stop_a_teacher_that_has_not_changed() -> None:
    model, easy = random_model(tiny_config("dense"), seed=0), canary(0)
    learn(model, easy)
    hard = [canary(seed) for seed in (1, 2, 3)]
    teacher = Teacher(model, DistillConfig(teacher="frozen", canary_bound=0.1))
    assert teacher.check([easy]) < 0.2
    assert teacher.check([easy, *hard]) > 0.5
    again = Teacher(model, DistillConfig(teacher="frozen", canary_bound=0.1))
    again.first_errors = list(teacher.first_errors)
    assert again.check([easy, *hard]) == teacher.check([easy, *hard])
