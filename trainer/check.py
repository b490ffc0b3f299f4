"""Measure whether the trainer tells the truth: the invariances it rests on, on one's own model."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.table import Table
from torch import Tensor
from transformers import PreTrainedModel

from trainer.chat import Chat
from trainer.check_samples import make_requests, segment_of, with_empty_hint
from trainer.config import TrainConfig
from trainer.engine import Engine, Generated
from trainer.engines import give_weights, open_engine
from trainer.forward import hidden_states, lm_head
from trainer.head import log_softmax_rows, token_logprobs
from trainer.model import (
    ModelConfig,
    load_model,
    load_tokenizer,
    save_model,
    weights,
)
from trainer.objective import ObjectiveConfig, Scored, count, objective
from trainer.pack import pack_rows
from trainer.records import Sample, Segment
from trainer.routing import require_routers
from trainer.scoring import measure_logprobs
from trainer.teacher import Teacher
from trainer.transfer import digest

# Of log-probabilities, and of gradients relative to their norm; by the type of the weights.
LOGPROBS = {"float32": 1e-4, "bfloat16": 0.25}
GRADIENTS = {"float32": 1e-5, "bfloat16": 0.05}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One property, measured.

    Example: `Checked(claim="rows packed = rows apart", deviation=2e-7, tolerance=1e-4)`.
    """

    claim: str
    deviation: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Tell whether it is within tolerance; what is no number is not."""
        return self.deviation <= self.tolerance


def check_run(config: TrainConfig) -> list[Checked]:
    """Measure every property on the model, engine and objective of a configuration.

    Raises:
        ValueError: model or tokenizer cannot be used.
        EngineError: the engine failed.
    """
    model = load_model(config.model, seed=config.seed)
    if config.rollout.router_replay:
        require_routers(model, name=config.model.origin)
    engine = open_engine(config)
    try:
        give_weights(engine, model)
        return measure_all(config, model, engine)
    finally:
        engine.close()


def measure_all(config: TrainConfig, model: PreTrainedModel, engine: Engine) -> list[Checked]:
    """Measure every property of a model that an engine samples from."""
    chat = Chat(load_tokenizer(config.model), config.chat)
    asked = make_requests(chat, config.rollout, seed=config.seed)
    first, again = engine.generate(asked), engine.generate(asked)
    segments = [segment_of(*pair) for pair in zip(asked, first, strict=True)]
    probe = _Probe(model, segments, config.objective, dtype=config.model.dtype)
    return [
        Checked(
            claim="the same request, the same tokens",
            deviation=float(sum(not np.array_equal(*pair) for pair in _ids(first, again))),
            tolerance=0.0,
        ),
        *probe.checks(),
        _check_saving(model, config.model),
    ]


def checks_table(checks: Sequence[Checked]) -> Table:
    """Return the results for people."""
    table = Table(title="is this trainer telling the truth here?", title_justify="left")
    for name in ("", "property", "deviation", "tolerance"):
        table.add_column(name, justify="right" if name in {"deviation", "tolerance"} else "left")
    for it in checks:
        mark = "holds" if it.holds else "[bold red]DOES NOT HOLD"
        table.add_row(mark, it.claim, f"{it.deviation:.2g}", f"{it.tolerance:.2g}")
    return table


class _Probe:
    """Owns what the properties of one model are measured on."""

    def __init__(
        self,
        model: PreTrainedModel,
        segments: Sequence[Segment],
        config: ObjectiveConfig,
        *,
        dtype: str,
    ) -> None:
        self._model, self._segments, self._config = model, segments, config
        self._logprobs, self._gradients = LOGPROBS[dtype], GRADIENTS[dtype]
        self._samples = [
            Sample(id=str(number), segment=it, advantage=float(number - 1.5), targets=())
            for number, it in enumerate(segments)
        ]

    def checks(self) -> Iterator[Checked]:
        """Measure all that the model alone is needed for."""
        yield Checked(
            claim="engine and trainer give sampled tokens the same log-probability",
            deviation=self._drift(),
            tolerance=self._logprobs,
        )
        yield Checked(
            claim="rows packed = rows apart", deviation=self._packing(), tolerance=self._logprobs
        )
        yield Checked(
            claim="a token of one row leaves the others alone",
            deviation=self._leak(),
            tolerance=self._logprobs,
        )
        yield Checked(
            claim="head in chunks = whole head", deviation=self._chunks(), tolerance=self._logprobs
        )
        whole = self._gradient([self._samples], self._samples)
        for number in (2, len(self._samples)):
            parts = [self._samples[start::number] for start in range(number)]
            yield Checked(
                claim=f"the gradient is the same in {number} micro-batches",
                deviation=_relative(self._gradient(parts, self._samples), whole),
                tolerance=self._gradients,
            )
        hinted = [with_empty_hint(it) for it in self._samples]
        yield Checked(
            claim="an empty hint changes no bit of the gradient",
            deviation=float((self._gradient([hinted], hinted) - whole).abs().max()),
            tolerance=0.0,
        )

    def _measure(self, segments: Sequence[Segment]) -> list[Tensor]:
        found = measure_logprobs(
            self._model,
            segments,
            temperature=self._config.temperature,
            chunk=self._config.chunk,
        )
        return [torch.from_numpy(it) for it in found]

    def _drift(self) -> float:
        pairs = zip(self._measure(self._segments), self._segments, strict=True)
        return max(_largest(found - torch.from_numpy(it.logprobs)) for found, it in pairs)

    def _packing(self) -> float:
        apart = [self._measure([it])[0] for it in self._segments]
        together = self._measure(self._segments)
        return max(_largest(one - other) for one, other in zip(apart, together, strict=True))

    @torch.no_grad()
    def _leak(self) -> float:
        rows = [it.ids for it in self._segments]
        changed = self._segments[0].ids.copy()
        changed[0] = (changed[0] + 1) % self._model.config.get_text_config().vocab_size
        before = hidden_states(self._model, pack_rows(rows))
        after = hidden_states(self._model, pack_rows([changed, *rows[1:]]))
        return _largest((before - after)[len(changed) :])

    @torch.no_grad()
    def _chunks(self) -> float:
        segment, weight = self._segments[0], lm_head(self._model)
        states = hidden_states(self._model, pack_rows([segment.ids]))[:-1]
        ids = torch.from_numpy(segment.ids[1:]).to(states.device)
        temperature = self._config.temperature
        whole = log_softmax_rows(states, weight, temperature=temperature)
        parts = token_logprobs(states, weight, ids, temperature=temperature, chunk=7)
        return _largest(whole.gather(-1, ids[:, None])[:, 0] - parts)

    def _gradient(self, parts: Sequence[Sequence[Sample]], whole: Sequence[Sample]) -> Tensor:
        """Return the gradient of all weights, added up over micro-batches."""
        config = self._config.model_copy(
            update={"distill": self._config.distill.model_copy(update={"teacher": "live"})}
        )
        teacher = Teacher(self._model, config.distill)
        self._model.zero_grad(set_to_none=True)
        for part in parts:
            rows = [Scored(sample=it) for it in part]
            loss, _ = objective(
                self._model,
                rows,
                teacher=teacher,
                denominators=count(whole),
                config=config,
            )
            loss.backward()
        found = [it.grad for it in self._model.parameters() if it.grad is not None]
        gradient = torch.cat([it.detach().float().flatten() for it in found])
        self._model.zero_grad(set_to_none=True)
        return gradient


def _check_saving(model: PreTrainedModel, config: ModelConfig) -> Checked:
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, Path(folder))
        saved = config.model_copy(update={"source": folder, "tiny": None})
        again = load_model(saved, seed=0, copies=1)
    differs = digest(weights(again)) != digest(weights(model))
    return Checked(claim="saved = loaded, to the bit", deviation=float(differs), tolerance=0.0)


def _ids(
    first: Sequence[Generated], again: Sequence[Generated]
) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(one.ids, other.ids) for one, other in zip(first, again, strict=True)]


def _largest(tensor: Tensor) -> float:
    return float(tensor.abs().max())


def _relative(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())
