import gc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.head import log_softmax_rows, token_logprobs, token_logprobs_and_entropies

torch.set_num_threads(1)


def draw(
    num_tokens: int, *, vocabulary: int = 97, width: int = 16, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor]:
    """Return hidden states, a head and ids; states and head take gradients."""
    generator = torch.Generator().manual_seed(num_tokens)
    hidden = torch.randn(num_tokens, width, generator=generator).to(dtype).requires_grad_()
    weight = torch.randn(vocabulary, width, generator=generator).to(dtype).requires_grad_()
    return hidden, weight, torch.randint(vocabulary, (num_tokens,), generator=generator)


def full_head(hidden: Tensor, weight: Tensor, ids: Tensor, *, temperature: float) -> Tensor:
    logprobs = (hidden @ weight.T).float().div(temperature).log_softmax(-1)
    return logprobs.gather(1, ids[:, None]).squeeze(1)


def gradients(logprobs: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of a sum in which every token weighs differently."""
    weights = torch.linspace(-1, 2, len(logprobs))
    return torch.autograd.grad((logprobs * weights).sum(), inputs)


def deviation(ours: Tensor, true: Tensor) -> float:
    return ((ours - true).abs().max() / true.abs().max()).item()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("chunk", [1, 7, 30, 64])
def test_the_chunked_head_and_its_gradient_are_those_of_the_full_head(
    chunk: int, temperature: float
) -> None:
    hidden, weight, ids = draw(30)
    ours = token_logprobs(hidden, weight, ids, temperature=temperature, chunk=chunk)
    true = full_head(hidden, weight, ids, temperature=temperature)
    assert ours.dtype == torch.float32
    assert deviation(ours, true) < 1e-6
    for mine, its in zip(
        gradients(ours, hidden, weight), gradients(true, hidden, weight), strict=True
    ):
        assert deviation(mine, its) < 1e-6


def test_the_entropy_is_that_of_all_tokens_and_takes_no_gradient() -> None:
    hidden, weight, ids = draw(30)
    logprobs, entropies = token_logprobs_and_entropies(
        hidden, weight, ids, temperature=0.7, chunk=8
    )
    rows = log_softmax_rows(hidden, weight, temperature=0.7)
    assert deviation(entropies, -(rows.exp() * rows).sum(-1)) < 1e-6
    assert logprobs.requires_grad
    assert not entropies.requires_grad


def test_the_rows_of_a_few_tokens_are_what_the_chunked_head_picks_from() -> None:
    hidden, weight, ids = draw(5)
    rows = log_softmax_rows(hidden, weight, temperature=0.7)
    assert rows.shape == (5, 97)
    picked = rows.gather(1, ids[:, None]).squeeze(1)
    assert deviation(token_logprobs(hidden, weight, ids, temperature=0.7), picked) < 1e-6


def test_logits_that_overflow_when_exponentiated_are_no_harm() -> None:
    hidden, weight, ids = draw(6)
    scaled = hidden.detach() * 1e3
    logprobs, entropies = token_logprobs_and_entropies(scaled, weight, ids, temperature=1.0)
    assert deviation(logprobs, full_head(scaled, weight, ids, temperature=1.0)) < 1e-6
    assert entropies.isfinite().all()


def test_no_tokens_have_no_logprobs_and_a_gradient_of_zero() -> None:
    hidden, weight, ids = draw(0)
    logprobs = token_logprobs(hidden, weight, ids, temperature=1.0)
    assert logprobs.shape == (0,)
    for gradient, given in zip(gradients(logprobs, hidden, weight), (hidden, weight), strict=True):
        assert torch.equal(gradient, torch.zeros_like(given))


def test_a_head_that_is_frozen_lets_the_gradient_through() -> None:
    hidden, weight, ids = draw(9)
    frozen = token_logprobs(hidden, weight.detach(), ids, temperature=1.0, chunk=4)
    trained = token_logprobs(hidden, weight, ids, temperature=1.0, chunk=4)
    assert torch.equal(*gradients(frozen, hidden), *gradients(trained, hidden))


def test_in_half_precision_the_rounding_does_not_grow_with_the_number_of_chunks() -> None:
    hidden, weight, ids = draw(512, dtype=torch.bfloat16)
    true = gradients(
        full_head(hidden.float(), weight.float(), ids, temperature=1.0), hidden, weight
    )
    for chunk in (1, 512):
        ours = token_logprobs(hidden, weight, ids, temperature=1.0, chunk=chunk)
        assert ours.dtype == torch.float32
        for mine, its in zip(gradients(ours, hidden, weight), true, strict=True):
            assert mine.dtype == torch.bfloat16
            assert deviation(mine.float(), its.float()) < 2e-2


def test_the_memory_of_a_large_vocabulary_is_bounded_by_the_chunk() -> None:
    vocabulary, chunk = 131_072, 48
    of_chunk = 4 * chunk * vocabulary
    # The first one has libraries lay out their own memory besides.
    _, small, large = (
        peak_bytes(train_head, *draw(num_tokens, vocabulary=vocabulary), chunk)
        for num_tokens in (64, 256, 512)
    )
    # Logits are held twice, more or less what the allocator keeps; all are eleven chunks, twice.
    assert max(small, large) < 8 * of_chunk


def train_head(hidden: Tensor, weight: Tensor, ids: Tensor, chunk: int) -> None:
    token_logprobs(hidden, weight, ids, temperature=1.0, chunk=chunk).sum().backward()


def peak_bytes(action: Callable[..., None], *inputs: Any) -> int:
    """Return by how much memory grew at most while an action ran."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = status_bytes("VmRSS")
    action(*inputs)
    return status_bytes("VmHWM") - before


def status_bytes(name: str) -> int:
    words = Path("/proc/self/status").read_text().split()
    return 1024 * next(int(value) for key, value in pairwise(words) if key == f"{name}:")
