"""Train one arm from one seed, and measure how it plays.

Letters of shapes: B episodes, R turns, N hinted turns, V vocabulary.
"""

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.bench.targeted.arms import Arm, RunConfig
from trainer.bench.targeted.branches import Hints, read, read_hinted, replies_of
from trainer.bench.targeted.gap import Play, measure
from trainer.bench.targeted.play import Rollouts, Sampler, play
from trainer.bench.targeted.policy import Policy
from trainer.bench.targeted.world import draw_prompts, draw_tools, reminder
from trainer.credit import advantages
from trainer.distill import kl_rows, negative_rows, trust_weights
from trainer.loss import policy_loss
from trainer.records import Episode
from trainer.seeds import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """What became of an arm."""

    # After the last step, on fresh episodes.
    final: Play
    # Of the rollouts of each step: errors by calls, and the mean reward.
    errors: tuple[float, ...]
    rewards: tuple[float, ...]
    # CPU seconds: of play; of reading, backward pass and step; of the teacher and of how far it
    # is from the policy.
    rollout_s: float
    rl_s: float
    teacher_s: float


def train(start: Policy, arm: Arm, *, config: RunConfig, seed: int) -> ArmResult:
    """Train a copy of a policy; prompts depend on the seed alone, and are those of each arm."""
    run = ArmRun(start, arm, config=config, seed=seed)
    errors, rewards = [], []
    for step in range(config.steps):
        rollouts = run.rollouts(step)
        errors.append(int(rollouts.is_error_BR.sum()) / int(rollouts.is_played_BR.sum()))
        rewards.append(float(rollouts.rewards_B.mean()))
        run.learn(rollouts, step)
    return ArmResult(
        final=measure(
            run.policy,
            teacher=run.teacher,
            num_episodes=config.final_episodes,
            turns_per_goal=config.turns_per_goal,
            seed=seed,
        ),
        errors=tuple(errors),
        rewards=tuple(rewards),
        rollout_s=run.spent["rollout"],
        rl_s=run.spent["rl"],
        teacher_s=run.spent["teacher"],
    )


class ArmRun:
    """The policy of an arm, its teacher and optimizer, and the time they took."""

    def __init__(self, start: Policy, arm: Arm, *, config: RunConfig, seed: int) -> None:
        self.arm = arm
        self.config = config
        self.seed = seed
        self.policy = copy.deepcopy(start)
        is_live = arm.distill.teacher == "live"
        self.teacher = self.policy if is_live else copy.deepcopy(start)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), betas=config.betas)
        self.spent = {"rollout": 0.0, "rl": 0.0, "teacher": 0.0}

    def rollouts(self, step: int) -> Rollouts:
        """Play the episodes of a step, in groups of one prompt."""
        config = self.config
        with self._timed("rollout"):
            drawn = draw_prompts(
                config.prompts,
                turns_per_goal=config.turns_per_goal,
                draw=generator(self.seed, "prompts", step),
            )
            prompts = drawn.take(torch.arange(config.prompts).repeat_interleave(config.group))
            draw = generator(self.seed, "replies", step)
            return play(Sampler(self.policy, prompts, draw=draw), prompts)

    def learn(self, rollouts: Rollouts, step: int) -> None:
        """Take a step: the policy gradient of all replies, and what pulls at flagged turns."""
        num_tokens = 3 * int(rollouts.is_played_BR.sum())
        advantages_B = self._advantages(rollouts)
        flagged_BR = self._flagged(rollouts)
        matters = ((advantages_B != 0) | flagged_BR.any(1)).nonzero()[:, 0]
        if not len(matters):
            return
        rollouts, advantages_B = rollouts.take(matters), advantages_B[matters]
        with self._timed("rl"):
            said_BR3V = read(self.policy, rollouts)[0]
            logprobs_BR3 = said_BR3V.gather(-1, replies_of(rollouts)[..., None])[..., 0]
            loss = _policy_sum(logprobs_BR3, rollouts, advantages_B)
        flagged_N2 = flagged_BR[matters].nonzero()
        if len(flagged_N2):
            loss = loss + self._pull(rollouts, flagged_N2, said_BR3V, logprobs_BR3, step)
        with self._timed("rl"):
            for group in self.optimizer.param_groups:
                group["lr"] = _lr(step, self.config)
            self.optimizer.zero_grad()
            (loss / num_tokens).backward()
            self.optimizer.step()
        self._teach_teacher()

    def _advantages(self, rollouts: Rollouts) -> Tensor:
        rewards_B = rollouts.rewards_B - self.arm.penalty * rollouts.is_error_BR.sum(1)
        episodes = [
            Episode(
                id=f"{number:04d}",
                group=str(number // self.config.group),
                number=number,
                prompt="",
                tools=(),
                segments=(),
                ending="finished",
                reward=reward,
                verdict="",
                detail="",
            )
            for number, reward in enumerate(rewards_B.tolist())
        ]
        by_id = advantages(episodes)
        return torch.tensor([by_id[episode.id] for episode in episodes])

    def _flagged(self, rollouts: Rollouts) -> Tensor:
        distill = self.arm.distill
        if not (distill.weight or distill.negative):
            return torch.zeros_like(rollouts.is_error_BR)
        return rollouts.is_played_BR if self.arm.turns == "all" else rollouts.is_error_BR

    def _pull(
        self,
        rollouts: Rollouts,
        flagged_N2: Tensor,
        said_BR3V: Tensor,
        logprobs_BR3: Tensor,
        step: int,
    ) -> Tensor:
        """Return the sum of what pulls at the flagged turns."""
        distill = self.arm.distill
        rows_N, turns_N = flagged_N2.unbind(1)
        pulled = torch.zeros(())
        if distill.weight:
            with self._timed("teacher"):
                taught_N3V = self._taught(rollouts, rows_N, turns_N, step)
                said_N3V, replies_N3 = said_BR3V[rows_N, turns_N], replies_of(rollouts)
                weights_N3 = self._weights(said_N3V, taught_N3V, replies_N3[rows_N, turns_N])
                far = kl_rows(said_N3V.flatten(0, 1), taught_N3V.flatten(0, 1), config=distill)
                pulled = pulled + distill.weight * (weights_N3.flatten() * far).sum()
        if distill.negative:
            # What the detector of unknown tools is at: the name, and not the argument.
            names = logprobs_BR3[rows_N, turns_N, :2].flatten()
            less = negative_rows(names, floor=distill.negative_floor)
            pulled = pulled + distill.negative * less.sum()
        return pulled

    @torch.no_grad()
    def _taught(self, rollouts: Rollouts, rows_N: Tensor, turns_N: Tensor, step: int) -> Tensor:
        """Return what the teacher would say after a hint, in the rows where there are any."""
        some, rows_N = rows_N.unique(return_inverse=True)
        rollouts = rollouts.take(some)
        tools_BK2 = rollouts.prompts.tools_BK2
        draw = generator(self.seed, "hints", step)
        if self.arm.lists == "other":
            tools_BK2 = draw_tools(len(tools_BK2), draw=draw)
        hints = Hints(
            rows_N=rows_N, turns_N=turns_N, tokens_NH=reminder(tools_BK2[rows_N], draw=draw)
        )
        replies_N3 = replies_of(rollouts)[rows_N, turns_N]
        return read_hinted(self.teacher, read(self.teacher, rollouts)[1], hints, replies_N3)

    def _weights(self, said_N3V: Tensor, taught_N3V: Tensor, replies_N3: Tensor) -> Tensor:
        """Return how much each token counts."""
        if not self.arm.distill.trust:
            return torch.ones(replies_N3.shape)
        said_N3 = said_N3V.gather(-1, replies_N3[..., None])[..., 0]
        taught_N3 = taught_N3V.gather(-1, replies_N3[..., None])[..., 0]
        return trust_weights(said_N3.T, taught_N3.T).T

    @torch.no_grad()
    def _teach_teacher(self) -> None:
        if self.arm.distill.teacher != "ema":
            return
        mine, theirs = self.teacher.parameters(), self.policy.parameters()
        for old, new in zip(mine, theirs, strict=True):
            old.lerp_(new, self.arm.distill.ema_rate)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.spent[what] += time.process_time() - start


def _policy_sum(logprobs_BR3: Tensor, rollouts: Rollouts, advantages_B: Tensor) -> Tensor:
    shape = logprobs_BR3.shape
    loss, _ = policy_loss(
        logprobs_BR3.flatten(),
        logprobs_BR3.detach().flatten(),
        rollouts.logprobs_BR3.flatten(),
        advantages_B[:, None, None].expand(shape).flatten(),
        rollouts.is_played_BR[..., None].expand(shape).flatten(),
    )
    return loss


def _lr(step: int, config: RunConfig) -> float:
    """Return the learning rate of a step: up in a line, then down to 0.

    The first steps of Adam are as long as later ones, and know no more than signs of a gradient.
    """
    return config.lr * min((step + 1) / (config.warm_up_steps + 1), 1 - step / config.steps)
