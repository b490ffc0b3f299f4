"""Compare the trainer with TRL: on given rollouts, and with sampling them."""

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from trainer.bench.speed.models import Size, save_model
from trainer.bench.speed.steps import Step, make_learner, one_thread, time_step, to_samples
from trainer.bench.speed.trl import Answer, Job, run_trl
from trainer.bench.speed.workload import Rollout, make_steps, to_episodes
from trainer.distill import DistillConfig
from trainer.engine import Generated, Request
from trainer.generate import LocalEngine
from trainer.model import ModelConfig, load_model, weights
from trainer.objective import ObjectiveConfig
from trainer.records import Ids
from trainer.seeds import derive

NUM_PROMPTS, GROUP = 4, 4
# Of these the peer is given the one that it is fastest with.
MICRO_BATCHES = (2, 4, 16)
CONFIG = ObjectiveConfig(distill=DistillConfig(weight=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """The same work, done by both."""

    work: str
    # Trained tokens a CPU second, in the median step.
    ours: float
    theirs: float
    # Difference between the norms of the first step's gradient, as a share; None where each
    # trained on tokens of its own.
    apart: float | None = None


def replayed(folder: Path, *, size: Size, peer: Path, num_steps: int) -> Duel:
    """Train both on the same rollouts."""
    save_model(folder / "model", size)
    model = load_model(ModelConfig(source=str(folder / "model"), device="cpu"), seed=0)
    with one_thread():
        rollouts = make_steps(model, num_steps=num_steps, num_prompts=NUM_PROMPTS, group=GROUP)
        learner = make_learner(model, CONFIG)
        steps = [time_step(learner, to_samples(to_episodes(step))) for step in rollouts]
    answers = list(_answers(_job(folder, num_steps=num_steps), steps=rollouts, peer=peer))
    return replace(
        _duel(f"given rollouts, {size}", steps, answers),
        apart=abs(steps[0].grad_norm / answers[0].grad_norms[0] - 1),
    )


def sampled(folder: Path, *, peer: Path, num_steps: int, new_tokens: int) -> Duel:
    """Let both sample so many tokens from each of the same prompts, and train on them."""
    save_model(folder / "model", "tiny")
    draw = np.random.default_rng(1)
    lengths = draw.integers(40, 120, num_steps * NUM_PROMPTS)
    # Letters: a token each.
    prompts = [bytes(draw.integers(97, 123, length).tolist()) for length in lengths]
    with one_thread():
        steps = list(_sample_and_train(folder / "model", prompts, new_tokens=new_tokens))
    job = replace(
        _job(folder, num_steps=num_steps),
        prompts=[prompt.decode() for prompt in prompts],
        new_tokens=new_tokens,
    )
    return _duel("sampled and trained, tiny", steps, list(_answers(job, peer=peer)))


def _job(folder: Path, *, num_steps: int) -> Job:
    return Job(
        model=folder / "model",
        scratch=folder,
        num_steps=num_steps,
        num_prompts=NUM_PROMPTS,
        group=GROUP,
        micro_batch=1,
    )


def _answers(job: Job, *, peer: Path, steps: Sequence[Sequence[Rollout]] = ()) -> Iterator[Answer]:
    for size in MICRO_BATCHES:
        scratch = job.scratch / f"trl-{size}"
        yield run_trl(replace(job, steps=steps, micro_batch=size, scratch=scratch), peer=peer)


def _duel(work: str, steps: Sequence[Step], answers: Sequence[Answer]) -> Duel:
    """Compare all steps but the first."""
    num_trained = [step.num_trained for step in steps[1:]]
    return Duel(
        work=work,
        ours=_rate(num_trained, [step.cpu_s for step in steps[1:]]),
        theirs=max(_rate(num_trained, answer.cpu_s) for answer in answers),
    )


def _rate(num_trained: Sequence[int], cpu_s: Sequence[float]) -> float:
    return median(num / took_s for num, took_s in zip(num_trained, cpu_s, strict=True))


def _sample_and_train(folder: Path, prompts: Sequence[bytes], *, new_tokens: int) -> Iterator[Step]:
    model = load_model(ModelConfig(source=str(folder), device="cpu"), seed=0)
    learner, engine = make_learner(model, CONFIG), LocalEngine(copy.deepcopy(model))
    for start in range(0, len(prompts), NUM_PROMPTS):
        began_s = time.process_time()
        engine.sync(weights(model), version=start)
        asked = [
            np.frombuffer(prompt, dtype=np.uint8).astype(np.int64)
            for prompt in prompts[start : start + NUM_PROMPTS]
            for _ in range(GROUP)
        ]
        said = engine.generate([
            Request(
                ids=ids,
                max_new_tokens=new_tokens,
                temperature=1.0,
                stop_ids=(),
                seed=derive(start, number),
            )
            for number, ids in enumerate(asked)
        ])
        episodes = to_episodes([_rollout(*it) for it in enumerate(zip(asked, said, strict=True))])
        step = time_step(learner, to_samples(episodes))
        yield replace(step, cpu_s=time.process_time() - began_s)
    engine.close()


def _rollout(number: int, answered: tuple[Ids, Generated]) -> Rollout:
    prompt, said = answered
    return Rollout(
        group=number // GROUP,
        prompt_ids=prompt.tolist(),
        completion_ids=said.ids.tolist(),
        mask=[1] * len(said.ids),
        logprobs=said.logprobs.tolist(),
        reward=float(said.ids.sum() % 7),
    )
