import numpy as np
import pytest
import torch

from trainer.bench.speed.long import SHORT, roll_out, with_targets
from trainer.bench.speed.steps import make_learner, one_thread, time_step, to_samples
from trainer.bench.speed.workload import make_steps, to_episodes
from trainer.distill import DistillConfig
from trainer.objective import ObjectiveConfig
from trainer.records import Sample
from trainer.scoring import measure_logprobs
from trainer.tiny import random_model, tiny_config


def test_what_is_trained_is_what_the_policy_sampled_in_rollouts_of_unequal_lengths() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    (rollouts,) = make_steps(model, num_steps=1, num_prompts=2, group=4)
    assert len({len(rollout.completion_ids) for rollout in rollouts}) > 2
    learner = make_learner(model, ObjectiveConfig(distill=DistillConfig(weight=0)))
    step = time_step(learner, to_samples(to_episodes(rollouts)))
    assert step.num_trained == sum(sum(rollout.mask) for rollout in rollouts)
    assert step.grad_norm > 0


def test_long_rollouts_have_the_log_probabilities_that_their_tokens_were_sampled_with() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    segments = roll_out(random_model(tiny_config("dense"), seed=0), shape=SHORT)
    assert len(segments) == SHORT.num_prompts * SHORT.group
    for segment in segments:
        assert segment.sampled.sum() == SHORT.num_turns * SHORT.said_tokens
        (expected,) = measure_logprobs(model, [segment], temperature=1.0)
        np.testing.assert_allclose(segment.logprobs, expected, atol=1e-5)


def test_every_second_long_rollout_has_targets_on_replies_of_its_own() -> None:
    segments = roll_out(random_model(tiny_config("dense"), seed=0), shape=SHORT)
    plain = [
        Sample(id=f"{i}/0", segment=it, advantage=0.0, targets=()) for i, it in enumerate(segments)
    ]
    hinted = with_targets(plain, shape=SHORT)
    assert [len({it.reply for it in sample.targets}) for sample in hinted] == [2, 0]
    for target in hinted[0].targets:
        assert hinted[0].segment.sampled[target.start : target.end].all()


@pytest.mark.parametrize("before", [1, 2])
def test_threads_are_as_before_afterwards(before: int) -> None:
    torch.set_num_threads(before)
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    torch.set_num_threads(1)
