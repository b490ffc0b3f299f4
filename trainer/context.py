"""Grow the tokens of one context: rendered ones, sampled ones, and which are which."""

from dataclasses import replace

import numpy as np

from trainer.chat import Rendered
from trainer.engine import Generated
from trainer.records import Experts, Flags, Floats, Ids, Reply, Segment, ToolResult, pad_experts


class Context:
    """Owns the tokens that the policy goes on from; each is put in once and stays."""

    def __init__(self, prompt: Rendered) -> None:
        self._ids: list[Ids] = [prompt.ids]
        self._sampled: list[Flags] = [np.zeros(len(prompt.ids), np.bool_)]
        self._logprobs: list[Floats] = [np.zeros(len(prompt.ids), np.float32)]
        self._replies: list[Reply] = []
        # Of the first tokens; None where no engine said.
        self._experts: Experts | None = None
        self.num_tokens = len(prompt.ids)
        # Token at which the header of the policy's next message begins.
        self.header = prompt.header

    @property
    def ids(self) -> Ids:
        """All tokens so far."""
        return np.concatenate(self._ids)

    def add_rendered(self, rendered: Rendered) -> None:
        """Add what was rendered after the last message, up to the next header."""
        self.header = self.num_tokens + rendered.header
        self._add(rendered.ids, None)

    def put_before_header(self, message: Ids) -> None:
        """Put a message in front of the header that waits for the policy."""
        ids = self.ids
        header = ids[self.header :]
        self._cut(self.header)
        self._add(message, None)
        self.header = self.num_tokens
        self._add(header, None)

    def add_sampled(self, generated: Generated) -> int:
        """Add what the policy said; return where it begins."""
        start = self.num_tokens
        self._add(generated.ids, generated.logprobs)
        if generated.experts is not None:
            # What sampled a token is what stays, should a later reading choose otherwise.
            before = generated.experts[:0] if self._experts is None else self._experts
            self._experts = np.concatenate([before, generated.experts[len(before) :]])
        return start

    def add_reply(self, reply: Reply) -> None:
        """Note what the last sampled tokens are."""
        self._replies.append(reply)

    def set_results(self, results: tuple[ToolResult, ...]) -> None:
        """Note that the last Reply was shown these results, not the whole ones."""
        self._replies[-1] = replace(self._replies[-1], results=results)

    def segment(self) -> Segment:
        """Return the Segment that this context is, without a header that nothing follows."""
        if self._replies and self._replies[-1].end < self.num_tokens:
            self._cut(self._replies[-1].end)
        return Segment(
            ids=self.ids,
            sampled=np.concatenate(self._sampled),
            logprobs=np.concatenate(self._logprobs),
            replies=tuple(self._replies),
            experts=self._padded_experts(),
        )

    def _padded_experts(self) -> Experts | None:
        return None if self._experts is None else pad_experts(self._experts, self.num_tokens)

    def _add(self, ids: Ids, logprobs: Floats | None) -> None:
        self._ids.append(ids)
        self._sampled.append(np.full(len(ids), logprobs is not None))
        self._logprobs.append(np.zeros(len(ids), np.float32) if logprobs is None else logprobs)
        self.num_tokens += len(ids)

    def _cut(self, num_tokens: int) -> None:
        """Leave the first tokens, which are all that was sampled and perhaps more."""
        self._ids = [self.ids[:num_tokens]]
        self._sampled = [np.concatenate(self._sampled)[:num_tokens]]
        self._logprobs = [np.concatenate(self._logprobs)[:num_tokens]]
        self._experts = None if self._experts is None else self._experts[:num_tokens]
        self.num_tokens = num_tokens
