from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from tests.trainer.samples import sample, segment, target
from trainer.distill import DistillConfig
from trainer.loss import LossConfig
from trainer.objective import Denominators, ObjectiveConfig, Scored, count, objective
from trainer.records import Floats, Sample, Segment
from trainer.scoring import measure_logprobs
from trainer.teacher import Teacher
from trainer.tiny import TinyKind, random_model, tiny_config

torch.set_num_threads(1)

SPANS = ((8, 14), (20, 32), (38, 45))


def on_policy(model: PreTrainedModel, made: Segment) -> Segment:
    """Give sampled tokens the log-probabilities that they have."""
    (logprobs,) = measure_logprobs(model, [made], temperature=1.0)
    return replace(made, logprobs=logprobs)


def rows(model: PreTrainedModel, *, hint: Sequence[int] = (1, 2, 3, 4)) -> list[Scored]:
    """Return four rows of unequal lengths; three hold Targets, one of them two."""
    made = [
        on_policy(model, segment(number, spans=SPANS[:num], length=length))
        for number, (num, length) in enumerate([(3, 50), (1, 14), (2, 40), (3, 45)])
    ]
    targets = [(0, 2), (), (1,), (2,)]
    return [
        Scored(
            sample=sample(
                seg,
                name=f"0-a.{number}/0",
                advantage=(0.5, -1.0, 0.25, 0.25)[number],
                targets=[target(seg, reply, hint=hint) for reply in targets[number]],
            )
        )
        for number, seg in enumerate(made)
    ]


def samples(made: Sequence[Scored]) -> list[Sample]:
    return [row.sample for row in made]


def config(**distill: Any) -> ObjectiveConfig:
    return ObjectiveConfig(chunk=9, distill=DistillConfig(**distill))


def gradient(
    model: PreTrainedModel,
    batches: Sequence[Sequence[Scored]],
    *,
    config: ObjectiveConfig,
    teacher: Teacher | None = None,
    denominators: Denominators | None = None,
) -> Tensor:
    """Return the gradient of a step that is split into these micro-batches, as one vector."""
    model.zero_grad()
    whole = count(it for batch in batches for it in samples(batch))
    for batch in batches:
        loss, _ = objective(
            model,
            batch,
            teacher=teacher or Teacher(model, config.distill),
            denominators=denominators or whole,
            config=config,
        )
        loss.backward()
    grads = [weight.grad for weight in model.parameters()]
    return torch.cat([grad.flatten() for grad in grads if grad is not None])


def distance(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm() / other.norm())


@pytest.mark.parametrize("kind", ["dense", "qwen3_moe", "deepseek_v3"])
@pytest.mark.parametrize("denominator", ["batch", "targets"])
def test_the_gradient_is_the_same_for_1_2_and_4_micro_batches(
    kind: TinyKind, denominator: str
) -> None:
    model = random_model(tiny_config(kind), seed=0)
    made, settings = rows(model), config(denominator=denominator)
    whole = gradient(model, [made], config=settings)
    halves = gradient(model, [made[:1], made[1:]], config=settings)
    single = gradient(model, [[row] for row in made], config=settings)
    assert distance(halves, whole) < 1e-6
    assert distance(single, whole) < 1e-6


def test_on_policy_the_ratio_is_one_and_the_mismatch_nothing() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    made = rows(model)
    old = [measure_logprobs(model, [row.sample.segment], temperature=1.0)[0] for row in made]
    for logprobs in (old, [None] * 4):
        scored = [replace(row, old_logprobs=one) for row, one in zip(made, logprobs, strict=True)]
        metrics = metrics_of(model, scored, settings=config())
        assert metrics["ratio"] / metrics["tokens"] == pytest.approx(1, abs=1e-6)
        assert abs(metrics["mismatch_kl"]) / metrics["tokens"] < 1e-9
        assert metrics["clipped"] == 0


def metrics_of(
    model: PreTrainedModel, made: Sequence[Scored], *, settings: ObjectiveConfig
) -> dict[str, float]:
    _, metrics = objective(
        model,
        made,
        teacher=Teacher(model, settings.distill),
        denominators=count(samples(made)),
        config=settings,
    )
    return metrics


def test_the_mismatch_of_an_engine_that_is_off_is_seen() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    (first, *_) = rows(model)
    seg = first.sample.segment
    off = replace(seg, logprobs=np.where(seg.sampled, seg.logprobs - 0.1, 0).astype(np.float32))
    metrics = metrics_of(model, [Scored(sample=sample(off))], settings=config())
    assert metrics["mismatch_k1"] / metrics["tokens"] == pytest.approx(-0.1, abs=1e-5)
    assert metrics["mismatch_kl"] / metrics["tokens"] == pytest.approx(
        np.exp(0.1) - 1 - 0.1, rel=1e-3
    )


@pytest.mark.parametrize("teacher", ["frozen", "ema", "live"])
def test_an_empty_hint_pulls_exactly_nothing_and_the_gradient_is_that_of_reward_to_the_bit(
    teacher: str,
) -> None:
    model = random_model(tiny_config("dense"), seed=0)
    settings = config(teacher=teacher, negative=0.5)
    hinted = rows(model, hint=())
    plain = [replace(row, sample=replace(row.sample, targets=())) for row in hinted]
    assert torch.equal(
        gradient(model, [hinted], config=settings), gradient(model, [plain], config=settings)
    )
    assert "kl" not in metrics_of(model, hinted, settings=settings)


def test_the_kl_of_a_hint_reaches_the_predictions_of_its_turn_and_no_others() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    seg = on_policy(model, segment(0, spans=SPANS, length=50))
    row = Scored(sample=sample(seg, advantage=0.0, targets=[target(seg, 1)]))
    assert touched(model, row) == list(range(19, 31))
    partial = replace(target(seg, 1), start=22, end=25)
    row = Scored(sample=sample(seg, advantage=0.0, targets=[partial]))
    assert touched(model, row) == [21, 22, 23]


def touched(model: PreTrainedModel, row: Scored) -> list[int]:
    """Return the tokens whose last hidden state, and so whose logits, get a gradient."""
    states: list[Tensor] = []

    def keep(_: Any, __: Any, answer: Any) -> None:
        answer.last_hidden_state.retain_grad()
        states.append(answer.last_hidden_state)

    settings = config(teacher="frozen")
    teacher = Teacher(model, settings.distill)
    hook = model.base_model.register_forward_hook(keep)
    gradient(model, [[row]], config=settings, teacher=teacher)
    hook.remove()
    assert states[0].grad is not None
    return states[0].grad[0].abs().sum(-1).nonzero()[:, 0].tolist()


def test_hints_do_not_change_the_gradient_of_reward_and_reward_not_that_of_hints() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    made, settings = rows(model), config()
    both = gradient(model, [made], config=settings)
    unhinted = [replace(row, sample=replace(row.sample, targets=())) for row in made]
    reward = gradient(model, [unhinted], config=settings)
    unrewarded = [replace(row, sample=replace(row.sample, advantage=0.0)) for row in made]
    hints = gradient(model, [unrewarded], config=settings)
    assert hints.norm() > 1e-3
    assert distance(reward + hints, both) < 1e-6


def test_the_two_weights_are_separate_factors_with_separate_denominators() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    made = rows(model)
    counts = count(samples(made))
    assert (counts.tokens, counts.target_tokens) == (74, 6 + 7 + 12 + 7)
    reward, hints = (
        gradient(model, [made], config=weighted(*weights)) for weights in ((1, 0), (0, 1))
    )
    mixed = gradient(model, [made], config=weighted(0.5, 3))
    assert distance(0.5 * reward + 3 * hints, mixed) < 1e-6
    fewer = Denominators(tokens=counts.tokens, target_tokens=counts.target_tokens / 2)
    halved = gradient(model, [made], config=weighted(0.5, 3), denominators=fewer)
    assert distance(0.5 * reward + 6 * hints, halved) < 1e-6


def weighted(reward: float, hints: float) -> ObjectiveConfig:
    return ObjectiveConfig(
        loss=LossConfig(weight=reward),
        distill=DistillConfig(weight=hints, denominator="targets"),
    )


@pytest.mark.parametrize(
    "choices",
    [
        {"divergence": "reverse"},
        {"divergence": "forward"},
        {"divergence": "jsd"},
        {"support": "topk", "top_k": 8},
        {"support": "sampled"},
        {"trust": True},
        {"negative": 0.5, "negative_floor": 1e-9, "weight": 0.0},
    ],
    ids=str,
)
def test_every_way_to_pull_gives_a_finite_gradient_that_is_not_nothing(
    choices: dict[str, Any],
) -> None:
    model = random_model(tiny_config("qwen3_moe"), seed=0)
    seg = on_policy(model, segment(0, spans=SPANS, length=50))
    row = Scored(sample=sample(seg, advantage=0.0, targets=[target(seg, 0), target(seg, 2)]))
    found = gradient(model, [[row]], config=config(**choices))
    assert torch.isfinite(found).all()
    assert found.norm() > 1e-3


def test_a_step_along_the_gradient_brings_the_policy_nearer_to_its_hinted_self() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    seg = on_policy(model, segment(0, spans=SPANS, length=50))
    row = Scored(sample=sample(seg, advantage=0.0, targets=[target(seg, 1)]))
    settings = config(teacher="frozen")
    teacher = Teacher(model, settings.distill)
    found = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    for _ in range(5):
        optimizer.zero_grad()
        loss, metrics = objective(
            model,
            [row],
            teacher=teacher,
            denominators=Denominators(tokens=12, target_tokens=12),
            config=settings,
        )
        loss.backward()
        optimizer.step()
        found.append(metrics["kl"])
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.8 * found[0]


def test_what_was_measured_is_told_for_each_kind_of_finding() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    seg = on_policy(model, segment(0, spans=SPANS, length=50))
    other = replace(target(seg, 2), kind="bad_json")
    row = Scored(sample=sample(seg, targets=[target(seg, 0), target(seg, 1), other]))
    metrics = metrics_of(model, [row], settings=config())
    assert (metrics["targets"], metrics["targets/unknown_tool"]) == (3, 2)
    assert (metrics["kl_tokens"], metrics["kl_tokens/bad_json"]) == (25, 7)
    parts = metrics["kl/unknown_tool"] + metrics["kl/bad_json"]
    assert metrics["kl"] == pytest.approx(parts, rel=1e-6)


def test_the_k1_penalty_pulls_towards_the_reference_and_needs_one() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    (row, *_) = rows(model)
    settings = ObjectiveConfig(loss=LossConfig(kl_coef=0.1), distill=DistillConfig(weight=0))
    with pytest.raises(ValueError, match=r"sample 0-a\.0/0: no reference_logprobs"):
        gradient(model, [[row]], config=settings)
    same = replace(row, reference_logprobs=row.sample.segment.logprobs)
    plain = gradient(model, [[row]], config=config(weight=0.0))
    assert distance(gradient(model, [[same]], config=settings), plain) < 1e-5
    away = replace(row, reference_logprobs=shifted(row.sample.segment))
    assert distance(gradient(model, [[away]], config=settings), plain) > 0.1


def shifted(seg: Segment) -> Floats:
    return np.where(seg.sampled, seg.logprobs + 3, 0).astype(np.float32)


def test_rows_without_sampled_tokens_give_no_gradient_and_no_fault() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    row = Scored(sample=sample(segment(0, spans=[], length=9), advantage=1.0))
    assert not gradient(model, [[row]], config=config()).any()


def test_a_target_on_tokens_that_were_not_sampled_is_our_mistake() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    seg = segment(0, spans=SPANS, length=50)
    row = Scored(sample=sample(seg, targets=[replace(target(seg, 1), end=33)]))
    with pytest.raises(AssertionError, match="tokens that the policy did not sample"):
        gradient(model, [[row]], config=config())
