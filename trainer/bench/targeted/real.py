"""Teach SmolLM2-135M-Instruct to call listed tools by what it would say after a hint.

Letters of shapes: N rows, L tokens of a reply, V vocabulary.
"""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from trainer.bench.smol import smol
from trainer.bench.targeted.errands import Errand, errand, reply_ids
from trainer.distill import DistillConfig, kl_rows
from trainer.seeds import generator
from trainer.settings import Settings


class RealConfig(Settings):
    """How much is trained and measured."""

    steps: int = 10
    # Errands of a step, and replies to each.
    errands: int = 4
    replies: int = 4
    # Errands that are measured and never trained.
    held_out: int = 12
    max_new_tokens: int = 12
    lr: float = 2e-5
    distill: DistillConfig = DistillConfig(divergence="forward", teacher="frozen", clip=None)
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RealResult:
    """Mean probabilities of a reply that calls some listed tool, over held-out errands."""

    plain: float
    hinted: float
    # After a hint that lists none of the tools that there are.
    other_hinted: float
    # Without a hint, after training.
    trained: float
    # Replies that were sampled while training, and those of them that called no listed tool.
    num_replies: int
    num_flagged: int
    cpu_s: float


def measure_real(folder: Path, *, config: RealConfig) -> RealResult:
    """Measure the model before and after a short training.

    Raises:
        NoModelError: the model cannot be had here.
    """
    model, tokenizer = smol(folder)
    start_s = time.process_time()
    held_out = [errand(-1 - number, tokenizer=tokenizer) for number in range(config.held_out)]
    pupil = _Pupil(model, tokenizer, config)
    before = [
        pupil.mass(each, ids)
        for each in held_out
        for ids in (each.ids, each.hinted_ids, each.other_ids)
    ]
    num_flagged = sum(pupil.learn(step) for step in range(config.steps))
    after = [pupil.mass(each, each.ids) for each in held_out]
    return RealResult(
        plain=_mean(before[0::3]),
        hinted=_mean(before[1::3]),
        other_hinted=_mean(before[2::3]),
        trained=_mean(after),
        num_replies=config.steps * config.errands * config.replies,
        num_flagged=num_flagged,
        cpu_s=time.process_time() - start_s,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class _Pupil:
    """The model that is trained, and the frozen one that reads hints."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, config: RealConfig
    ) -> None:
        self.model = model
        self.teacher = copy.deepcopy(model).requires_grad_(requires_grad=False)
        self.tokenizer = tokenizer
        self.config = config
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, weight_decay=0)
        (self.end,) = tokenizer("<|im_end|>", add_special_tokens=False)["input_ids"]

    @torch.no_grad()
    def mass(self, each: Errand, ids: Sequence[int]) -> float:
        """Return the probability of replying with a call of some listed tool."""
        replies = [torch.tensor(reply_ids(tool, tokenizer=self.tokenizer)) for tool in each.listed]
        said_NLV = _said(self.model, ids, pad_sequence(replies, batch_first=True))
        return sum(
            float(row_LV[: len(reply)].gather(-1, reply[:, None]).sum().exp())
            for row_LV, reply in zip(said_NLV, replies, strict=True)
        )

    def learn(self, step: int) -> int:
        """Pull at the flagged replies of some errands; return how many there were."""
        config = self.config
        flagged = []
        for number in range(step * config.errands, (step + 1) * config.errands):
            each = errand(number, tokenizer=self.tokenizer)
            right = [reply_ids(tool, tokenizer=self.tokenizer) for tool in each.listed]
            sampled = self._sample(each, number)
            flagged.append((each, [reply for reply in sampled if reply.tolist() not in right]))
        num_tokens = sum(len(reply) for _, replies in flagged for reply in replies)
        for each, replies in flagged:
            if replies:
                (self._pull(each, replies) / num_tokens).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return sum(len(replies) for _, replies in flagged)

    @torch.no_grad()
    def _sample(self, each: Errand, number: int) -> list[Tensor]:
        """Sample replies at temperature 1, each up to its end."""
        config = self.config
        draw = generator(config.seed, "real replies", number)
        ids_NL = torch.tensor([each.ids] * config.replies)
        memory = DynamicCache(config=self.model.config)
        new: list[Tensor] = []
        for _ in range(config.max_new_tokens):
            logits_N1V = self.model(ids_NL, cache=memory, use_cache=True, logits_to_keep=1).logits
            ids_NL = torch.multinomial(logits_N1V[:, 0].softmax(-1), 1, generator=draw)
            new.append(ids_NL)
        replies_NL = torch.cat(new, dim=1)
        is_end_NL = replies_NL.eq(self.end).long()
        num_ends_NL = is_end_NL.cumsum(1) - is_end_NL
        return [row[ends == 0] for row, ends in zip(replies_NL, num_ends_NL, strict=True)]

    def _pull(self, each: Errand, replies: Sequence[Tensor]) -> Tensor:
        """Return the divergence from what the teacher says after the hint, summed over tokens."""
        padded_NL = pad_sequence(list(replies), batch_first=True)
        is_said_NL = torch.arange(padded_NL.shape[1]) < torch.tensor([[len(r)] for r in replies])
        with torch.no_grad():
            taught_NLV = _said(self.teacher, each.hinted_ids, padded_NL)
        said_NLV = _said(self.model, each.ids, padded_NL)
        divergence = kl_rows(
            said_NLV[is_said_NL], taught_NLV[is_said_NL], config=self.config.distill
        )
        return self.config.distill.weight * divergence.sum()


def _said(model: PreTrainedModel, ids: Sequence[int], replies_NL: Tensor) -> Tensor:
    """Return the log-probabilities [N, L, V] of replies.

    All but the last token of the context are read without gradient: it costs a fifth, and what is
    learnt is how to reply, not how to read.
    """
    memory = DynamicCache(config=model.config)
    with torch.no_grad():
        model(torch.tensor([ids[:-1]]), cache=memory, use_cache=True, logits_to_keep=1)
    memory.batch_repeat_interleave(len(replies_NL))
    last_N1 = torch.full((len(replies_NL), 1), ids[-1])
    read_NL = torch.cat([last_N1, replies_NL[:, :-1]], dim=1)
    logits_NLV: Tensor = model(read_NL, cache=memory, use_cache=True).logits
    return logits_NLV.log_softmax(-1)
