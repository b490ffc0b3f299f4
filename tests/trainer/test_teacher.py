from collections.abc import Mapping

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from tests.trainer.samples import segment, target
from trainer.distill import DistillConfig
from trainer.teacher import Teacher
from trainer.tiny import random_model, tiny_config

torch.set_num_threads(1)


def moved(model: PreTrainedModel, *, seed: int) -> None:
    """Take a step somewhere."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=draw))


def copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_frozen_teacher_stays_as_it_was() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    start = copied(model.state_dict())
    teacher = Teacher(model, DistillConfig(teacher="frozen"))
    moved(model, seed=1)
    teacher.update(model)
    assert same(teacher.model.state_dict(), start)


def test_an_averaged_teacher_follows_by_its_rate() -> None:
    model = random_model(tiny_config("deepseek_v3"), seed=0)
    expected = copied(model.state_dict())
    teacher = Teacher(model, DistillConfig(teacher="ema", ema_rate=0.25))
    for seed in (1, 2, 3):
        moved(model, seed=seed)
        teacher.update(model)
        for name, weight in model.state_dict().items():
            expected[name] = 0.75 * expected[name] + 0.25 * weight
    for name, weight in teacher.model.state_dict().items():
        torch.testing.assert_close(weight, expected[name], rtol=1e-5, atol=1e-6)


def test_a_live_teacher_is_the_policy_itself() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    assert Teacher(model, DistillConfig(teacher="live")).model is model


def test_a_teacher_whose_advice_has_no_weight_takes_no_memory() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    teacher = Teacher(model, DistillConfig(teacher="ema", weight=0))
    assert teacher.model is model
    assert teacher.tensors() == {}


@pytest.mark.parametrize("kind", ["frozen", "ema", "live"])
def test_a_teacher_has_no_gradient_and_gives_the_policy_none(kind: str) -> None:
    model = random_model(tiny_config("dense"), seed=0)
    teacher = Teacher(model, DistillConfig(teacher=kind))
    seg = segment(0, spans=[(10, 20)], length=25)
    (states,) = teacher.read(seg, [target(seg, 0)])
    assert not states.requires_grad
    assert not teacher.head.requires_grad
    # The policy can still learn.
    assert all(weight.requires_grad for weight in model.parameters())
