"""What samples from the policy, whatever runs it: requests of token ids in, sampled ids out.

Letters of shapes: P tokens of a prompt, N sampled tokens, L layers with a router, K experts of a
token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from trainer.records import Experts, Floats, Ids, Stop

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """A context that the policy goes on from.

    Example: `Request(ids=ids, max_new_tokens=256, temperature=1.0, stop_ids=(151645,), seed=7)`.
    """

    # [P], the whole context; at least one.
    ids: Ids
    # At least one.
    max_new_tokens: int
    # Divides the logits; 0 takes the likeliest token. There is no top-p, top-k or penalty: what is
    # trained must be the distribution that was sampled from.
    temperature: float
    # Sampling ends after one of these, which is kept; nothing else ends it.
    stop_ids: tuple[int, ...]
    # Same request, same weights: same tokens, whatever else is asked at the same time.
    seed: int
    # Whether the answer is to say which experts were chosen.
    wants_experts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Generated:
    """What the policy said."""

    # [N], a stop id included.
    ids: Ids
    # [N], log-probability of each id in the distribution that it was drawn from, in float32: at
    # the request's temperature, and at 1 where that is 0.
    logprobs: Floats
    stop: Stop
    # Of the weights that the first token was sampled with.
    version: int
    # [P + N - 1, L, K], of every token but the last, which no layer has seen; None unless wanted.
    experts: Experts | None = None


class EngineError(RuntimeError):
    """The engine failed, or answered what cannot be used; says nothing about the policy."""


class Engine(Protocol):
    """Something that samples from the policy; one thread uses it at a time."""

    @property
    def version(self) -> int:
        """Version of the weights that the next requests are answered with."""

    def generate(self, requests: Sequence[Request]) -> list[Generated]:
        """Answer each request, in order.

        Raises:
            ValueError: a request cannot be answered by any engine: empty, or negative numbers.
            EngineError: the engine failed.
        """

    def sync(self, weights: Mapping[str, "torch.Tensor"], *, version: int) -> None:
        """Replace the weights; requests from now on are answered with them.

        Raises:
            EngineError: the engine does not have exactly these weights now.
        """

    def close(self) -> None:
        """Let go of what the engine holds: caches, connections."""


def check_requests(
    requests: Sequence[Request], *, max_tokens: int | None = None, vocabulary: int | None = None
) -> None:
    """Refuse requests that no engine can answer, or not with this model.

    Raises:
        ValueError: the number of the first such request, what is wrong, what was expected.
    """
    for number, request in enumerate(requests):
        if fault := _fault(request, max_tokens=max_tokens, vocabulary=vocabulary):
            raise ValueError(f"request {number}: {fault}")


def _fault(request: Request, *, max_tokens: int | None, vocabulary: int | None) -> str:
    ids, num_new = request.ids, request.max_new_tokens
    if not len(ids) or ids.min() < 0 or (vocabulary is not None and ids.max() >= vocabulary):
        return f"ids {ids[:3].tolist()}…; expected at least one, all from 0 to below {vocabulary}"
    if num_new < 1 or request.temperature < 0:
        return f"{num_new} new tokens, temperature {request.temperature}; expected from 1, from 0"
    if max_tokens is not None and len(ids) + num_new > max_tokens:
        return f"{len(ids)} ids and {num_new} new tokens; the model takes {max_tokens}"
    return ""
