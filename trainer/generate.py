"""Sample from a model of this process."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor
from transformers import PreTrainedModel

from trainer.batch import Batch, Run, Start, begin, bytes_per_token, gather, go_on, read
from trainer.engine import EngineError, Generated, Request, check_requests
from trainer.invariant import MIN_ROWS, make_invariant, round_up
from trainer.prefixes import Prefixes
from trainer.settings import Settings


class LocalConfig(Settings):
    """How much a local engine may hold at a time; none of it changes what is sampled."""

    # Keys and values of the contexts that are sampled at the same time, at most; twice as much for
    # the moment in which a batch is put together anew.
    batch_bytes: PositiveInt = 2**31
    # Keys and values kept between the turns of an Episode, at most; the oldest go first.
    cache_bytes: NonNegativeInt = 2**31
    # Tokens that go through the model at once while contexts are read.
    prefill_tokens: PositiveInt = 8192


class LocalEngine:
    """An `Engine` over a model that is its own: `sync` writes into it.

    A context is read once: what a request has in common with an earlier one, the last turn of its
    Episode or another try at its prompt, comes from kept keys and values. The same request and
    weights give the same tokens whatever else is in the batch. On CPU with MKL log-probabilities
    are the same to the bit (see `trainer.invariant`); elsewhere they are within rounding, and a
    token is another one about as seldom as rounding errors are small.
    """

    def __init__(
        self, model: PreTrainedModel, config: LocalConfig | None = None, *, version: int = 0
    ) -> None:
        """Take over a model.

        Raises:
            ValueError: it has layers other than those of full attention.
        """
        _check_layers(model)
        self.version = version
        self._model = model.train(mode=False)
        make_invariant(self._model)
        self._config = config or LocalConfig()
        self._prefixes = Prefixes(max_bytes=self._config.cache_bytes)

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request]) -> list[Generated]:
        """Answer each request, in order.

        Raises:
            ValueError: a request is empty, has numbers or ids out of range, or more tokens than
                the model takes.
            EngineError: the weights have become such that they give no probabilities.
        """
        config = self._model.config.get_text_config()
        limit = getattr(config, "max_position_embeddings", None)
        check_requests(requests, max_tokens=limit, vocabulary=config.vocab_size)
        runs = [begin(request) for request in requests]
        # The longest first, so that the last ones, alone in their batch, are short.
        waiting = sorted(runs, key=lambda run: -run.num_tokens)
        batch: Batch | None = None
        while waiting or batch:
            newcomers = self._read(self._admit(waiting, batch))
            batch = self._gather([*filter(None, [batch]), *newcomers])
            if batch:
                go_on(self._model, batch)
        if not all(math.isfinite(it) for run in runs for it in run.logprobs):
            raise EngineError(f"weights of version {self.version} give no finite log-probabilities")
        return [run.generated(self.version) for run in runs]

    def sync(self, weights: Mapping[str, Tensor], *, version: int) -> None:
        """Copy weights into the model, and forget what was computed with the old ones.

        Raises:
            EngineError: they are not the weights of this model; nothing was copied.
        """
        own = self._model.state_dict()
        _check_weights(weights, own)
        with torch.no_grad():
            for name, weight in weights.items():
                own[name].copy_(weight)
        self._prefixes.clear()
        self.version = version

    def close(self) -> None:
        """Forget all keys and values."""
        self._prefixes.clear()

    def _admit(self, waiting: list[Run], batch: Batch | None) -> list[Run]:
        """Take as many of those that wait as there is memory for: at least one if none runs."""
        if not waiting:
            return []
        held = [run for run in batch.runs if not run.is_done] if batch else []
        longest = max(run.num_tokens for run in [*held, *waiting])
        room = self._config.batch_bytes // (longest * self._bytes_per_token) - len(held)
        count = max(room, 0 if held else 1)
        admitted, waiting[:] = waiting[:count], waiting[count:]
        return admitted

    @cached_property
    def _bytes_per_token(self) -> int:
        return bytes_per_token(self._model)

    def _read(self, runs: Sequence[Run]) -> Iterator[Batch]:
        """Read the contexts of requests; one that several ask with is read once."""
        asking: dict[bytes, list[Run]] = {}
        for run in runs:
            asking.setdefault(run.request.ids.tobytes(), []).append(run)
        starts = []
        for same in asking.values():
            kept, length = self._prefixes.longest(same[0].request.ids)
            starts.append(Start(runs=same, kept=kept, length=length))
        limit = self._config.prefill_tokens
        for some in _split(starts, max_tokens=limit):
            yield read(self._model, some, max_tokens=limit)

    def _gather(self, batches: Sequence[Batch]) -> Batch | None:
        """Keep what is done for the next turn, and go on with the rest."""
        for batch in batches:
            for row, run in enumerate(batch.runs):
                if run.is_done:
                    kept = batch.rows.keep(row, run.read_ids)
                    self._prefixes.add(kept)
                    run.experts.append(kept.experts)
        return gather(batches)


def _split(starts: Sequence[Start], *, max_tokens: int) -> Iterator[list[Start]]:
    """Yield groups of contexts with about as much to read: so many tokens, padding included."""
    group: list[Start] = []
    for start in sorted(starts, key=lambda it: it.num_new):
        if group and (len(group) + 1) * round_up(start.num_new, MIN_ROWS) > max_tokens:
            yield group
            group = []
        group.append(start)
    if group:
        yield group


def _check_layers(model: PreTrainedModel) -> None:
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ())
    if not kinds and getattr(config, "sliding_window", None):
        kinds = {"sliding_attention"}
    if others := sorted(kinds - {"full_attention"}):
        raise ValueError(
            f"{config.model_type}: the local engine keeps whole contexts, expected layers of "
            f"full_attention alone, found {', '.join(others)}; use a server instead"
        )


def _check_weights(weights: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Refuse weights that are not those of the model; tied ones may come once."""
    written = {own[name].data_ptr() for name in weights if name in own}
    missing = [name for name, it in own.items() if it.data_ptr() not in written]
    wrong = [name for name, it in weights.items() if name not in own or it.shape != own[name].shape]
    if missing or wrong:
        shown = ", ".join(sorted({*missing, *wrong})[:3])
        raise EngineError(
            f"{len(wrong)} weights of other names or shapes, {len(missing)} missing: {shown}"
        )
