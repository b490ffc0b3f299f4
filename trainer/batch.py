"""Continue contexts side by side: read them, draw a token of each, let go of those that are done.

Letters of shapes: B contexts, S new tokens of each, D width of the model, V vocabulary, R
layers with a router, K experts of a token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from trainer.draw import draw, uniforms
from trainer.engine import Generated, Request
from trainer.forward import lm_head
from trainer.invariant import GRAIN, MIN_ROWS, round_up
from trainer.kv import Kept, Rows, join
from trainer.records import Ids
from trainer.routing import recording, routers

# Tokens that a batch can grow by before it is copied to a larger place: at the least, and as a
# share of what is there.
MIN_ROOM = 128
ROOM = 0.25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """A request while it is being answered."""

    request: Request
    # One for each new token: they decide which.
    uniforms: Sequence[float]
    # What was said so far.
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    # Of all tokens but the last, [tokens, R, K]; one when it is done.
    experts: list[Tensor] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        """Tokens of its context, at most."""
        return len(self.request.ids) + self.request.max_new_tokens

    @property
    def has_stopped(self) -> bool:
        """Tell whether the policy ended its message."""
        return bool(self.ids) and self.ids[-1] in self.request.stop_ids

    @property
    def is_done(self) -> bool:
        """Tell whether nothing more is to be drawn."""
        return self.has_stopped or len(self.ids) == self.request.max_new_tokens

    @property
    def last_id(self) -> Ids:
        """The token that has no keys and values yet."""
        return np.array(self.ids[-1:], np.int64)

    @property
    def read_ids(self) -> Ids:
        """The tokens that have keys and values: all but the last."""
        return np.concatenate([self.request.ids, np.array(self.ids[:-1], np.int64)])

    def generated(self, version: int) -> Generated:
        """Return what was said."""
        return Generated(
            ids=np.array(self.ids, np.int64),
            logprobs=np.array(self.logprobs, np.float32),
            stop="end" if self.has_stopped else "length",
            version=version,
            experts=self.experts[0].cpu().numpy() if self.request.wants_experts else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Contexts that are continued side by side."""

    # Keys and values of all tokens but the last that was drawn.
    rows: Rows
    # One a row.
    runs: Sequence[Run]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Start:
    """A context that is to be read, from where it is known."""

    # Those that go on from it: they ask with the same ids.
    runs: Sequence[Run]
    # What begins with the same ids; None where nothing does.
    kept: Kept | None
    # Tokens in common with it.
    length: int

    @property
    def ids(self) -> Ids:
        """The whole context."""
        return self.runs[0].request.ids

    @property
    def num_new(self) -> int:
        """Tokens to read."""
        return len(self.ids) - self.length


def begin(request: Request) -> Run:
    """Return a request as one of which nothing is answered."""
    return Run(request=request, uniforms=uniforms(request.seed, request.max_new_tokens).tolist())


def read(model: PreTrainedModel, starts: Sequence[Start], *, max_tokens: int) -> Batch:
    """Read contexts, at most so many tokens at once, and draw the first token of each run."""
    num_new = round_up(max(it.num_new for it in starts), MIN_ROWS)
    at_once = max(min(num_new, max_tokens // len(starts), GRAIN) // MIN_ROWS, 1) * MIN_ROWS
    rows = Rows(
        lengths=[it.length for it in starts],
        starts=[it.kept for it in starts],
        capacity=round_up(max(len(it.ids) for it in starts) + at_once, GRAIN),
    )
    last_BD: list[Tensor] = [torch.empty(0)] * len(starts)
    for _ in range(0, num_new, at_once):
        before = tuple(rows.lengths)
        chunks = [it.ids[done : done + at_once] for it, done in zip(starts, before, strict=True)]
        hidden_BSD = _forward(model, rows, chunks, num_new=at_once)
        for row, start in enumerate(starts):
            rows.lengths[row] += len(chunks[row])
            if before[row] < len(start.ids) == rows.lengths[row]:
                last_BD[row] = hidden_BSD[row, len(start.ids) - before[row] - 1]
    owners = [row for row, start in enumerate(starts) for _ in start.runs]
    if len(owners) > len(starts):
        rows = join([(rows, owners)], capacity=rows.capacity)
    runs = [run for start in starts for run in start.runs]
    _say(model, torch.stack(last_BD)[owners], runs)
    return Batch(rows=rows, runs=runs)


def gather(batches: Sequence[Batch]) -> Batch | None:
    """Return one batch of all that is not done, with room to grow; None where nothing is left."""
    parts = [
        (batch, [row for row, run in enumerate(batch.runs) if not run.is_done]) for batch in batches
    ]
    parts = [(batch, rows) for batch, rows in parts if rows]
    if not parts:
        return None
    longest = max(batch.rows.lengths[row] for batch, rows in parts for row in rows)
    capacity = round_up(longest + max(MIN_ROOM, int(ROOM * longest)), GRAIN)
    return Batch(
        rows=join([(batch.rows, rows) for batch, rows in parts], capacity=capacity),
        runs=[batch.runs[row] for batch, rows in parts for row in rows],
    )


def go_on(model: PreTrainedModel, batch: Batch) -> None:
    """Draw tokens until half of the runs are done, or there is no more room."""
    rows, runs = batch.rows, batch.runs
    while 2 * sum(not run.is_done for run in runs) > len(runs) and rows.has_room:
        hidden_BSD = _forward(model, rows, [run.last_id for run in runs], num_new=1)
        going = [row for row, run in enumerate(runs) if not run.is_done]
        for row in going:
            rows.lengths[row] += 1
        _say(model, hidden_BSD[going, 0], [runs[row] for row in going])


def bytes_per_token(model: PreTrainedModel) -> int:
    """Measure how much memory the keys and values of one token of one context take."""
    rows = Rows(lengths=[0], capacity=GRAIN)
    _forward(model, rows, [np.zeros(1, np.int64)], num_new=MIN_ROWS)
    return rows.bytes_per_token


def _forward(model: PreTrainedModel, rows: Rows, ids: Sequence[Ids], *, num_new: int) -> Tensor:
    """Return the hidden states [B, S, D] of new tokens, padded on the right."""
    num_rows = max(len(ids), -(-MIN_ROWS // num_new))
    ids_BS = np.zeros((num_rows, num_new), np.int64)
    for row, new in enumerate(ids):
        ids_BS[row, : len(new)] = new
    places_BS, mask_B1SL = rows.feed(num_new, device=model.device, dtype=model.dtype)
    with recording(routers(model)) as chosen:
        answer = model.base_model(
            input_ids=torch.from_numpy(ids_BS).to(model.device),
            position_ids=functional.pad(places_BS, (0, 0, 0, num_rows - len(ids))),
            attention_mask=mask_B1SL,
            cache=rows,
            use_cache=True,
        )
    if chosen:
        rows.note(chosen)
    return cast("Tensor", answer.last_hidden_state)


def _say(model: PreTrainedModel, hidden_BD: Tensor, runs: Sequence[Run]) -> None:
    """Draw the next token of each run."""
    padded_BD = functional.pad(hidden_BD, (0, 0, 0, max(MIN_ROWS - len(runs), 0)))
    logits_BV = functional.linear(padded_BD, lm_head(model))[: len(runs)]
    ids_B, logprobs_B = draw(
        logits_BV,
        torch.tensor([run.uniforms[len(run.ids)] for run in runs], dtype=torch.float64),
        temperatures=[run.request.temperature for run in runs],
    )
    for run, token, logprob in zip(runs, ids_B.tolist(), logprobs_B.tolist(), strict=True):
        run.ids.append(token)
        run.logprobs.append(logprob)
