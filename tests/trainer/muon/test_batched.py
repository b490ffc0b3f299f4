from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from trainer.muon.batched import Muon, find_runs
from trainer.muon.config import GroupChoices, MuonConfig, NewtonSchulzConfig, Scale
from trainer.muon.cuts import Columns, Cut, Experts, Rows, Split, Whole
from trainer.muon.families import rules_for
from trainer.muon.reference import ReferenceMuon, view_of
from trainer.muon.units import Membership, Rule, sort_parameters, units_of
from trainer.tiny import TinyKind, random_model, tiny_config

KINDS: tuple[TinyKind, ...] = ("dense", "qwen3_moe", "deepseek_v3", "kimi_k25")
Parameters = dict[str, nn.Parameter]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def model_parameters(kind: TinyKind) -> tuple[Parameters, Membership]:
    config = tiny_config(kind)
    named = dict(random_model(config, seed=0).named_parameters())
    shapes = {name: tuple(it.shape) for name, it in named.items()}
    return named, sort_parameters(shapes, rules_for(config, choices=GroupChoices()))


def toy_parameters(dtype: torch.dtype = torch.float32) -> tuple[Parameters, Membership]:
    """Return matrices of mixed cuts, of which two parameters share shapes of units."""
    draw = torch.Generator().manual_seed(0)
    cuts: dict[str, tuple[tuple[int, ...], Cut]] = {
        "rows": ((24, 10), Rows(size=8)),
        "same": ((16, 10), Rows(size=8)),
        "columns": ((12, 20), Columns(size=5)),
        "split": ((9, 4), Split(sizes=(2, 5, 2), cuts=(Whole(), Whole(), Whole()))),
        "experts": ((5, 12, 7), Experts(cut=Split(sizes=(6, 6), cuts=(Whole(), Whole())))),
    }
    named = {
        name: nn.Parameter(torch.randn(shape, generator=draw).to(dtype))
        for name, (shape, _) in cuts.items()
    }
    shapes = {name: tuple(it.shape) for name, it in named.items()}
    rules = [Rule(pattern=name, cut=cut) for name, (_, cut) in cuts.items()]
    return named, sort_parameters(shapes, rules)


def set_gradients(named: Parameters, *, step: int) -> None:
    for number, parameter in enumerate(named.values()):
        draw = torch.Generator().manual_seed(1000 * step + number)
        parameter.grad = torch.randn(parameter.shape, generator=draw).to(parameter.dtype)


def assert_same_bits(
    make: Callable[[], tuple[Parameters, Membership]], config: MuonConfig, *, num_steps: int = 3
) -> None:
    (slow, membership), (fast, _) = make(), make()
    before = {name: it.detach().clone() for name, it in slow.items()}
    reference, batched = ReferenceMuon(slow, membership, config), Muon(fast, membership, config)
    for step in range(num_steps):
        for named, optimizer in ((slow, reference), (fast, batched)):
            set_gradients(named, step=step)
            optimizer.step()
    for name in membership.muon:
        assert torch.equal(slow[name], fast[name]), name
        assert not torch.equal(slow[name], before[name]), name
        momentum = batched.state[fast[name]]["momentum_buffer"]
        assert torch.equal(reference.momentum[name], momentum), name
    for name in membership.adamw:
        assert torch.equal(fast[name], before[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_batched_step_has_the_bits_of_the_reference_over_a_tiny_model(kind: TinyKind) -> None:
    assert_same_bits(lambda: model_parameters(kind), MuonConfig(lr=0.02, weight_decay=0.1))


@pytest.mark.parametrize(
    "given",
    [
        {"nesterov": nesterov, "momentum_form": form, "scale": scale}
        for nesterov, form, scale in product((True, False), ("sum", "ema"), get_args(Scale))
    ],
)
def test_so_it_has_with_every_convention(given: dict[str, Any]) -> None:
    assert_same_bits(toy_parameters, MuonConfig.model_validate({"lr": 0.1, **given}))


@pytest.mark.parametrize("chunk_bytes", [1, 500, 2**21])
@pytest.mark.parametrize("form", ["plain", "folded", "gram"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_so_it_has_in_each_form_and_dtype_whatever_the_chunks_are(
    dtype: str, form: str, chunk_bytes: int
) -> None:
    given = {"dtype": dtype, "form": form, "chunk_bytes": chunk_bytes}
    chosen = NewtonSchulzConfig.model_validate(given)
    assert_same_bits(toy_parameters, MuonConfig(lr=0.1, orthogonalize=chosen))


@pytest.mark.parametrize("coefficients", ["polar_express", "deepseek_v4"])
def test_so_it_has_with_other_coefficients(coefficients: str) -> None:
    chosen = NewtonSchulzConfig.model_validate({"coefficients": coefficients})
    assert_same_bits(toy_parameters, MuonConfig(lr=0.1, orthogonalize=chosen))


def test_so_it_has_with_weights_in_bf16_whose_momentum_is_in_fp32() -> None:
    assert_same_bits(lambda: toy_parameters(torch.bfloat16), MuonConfig(lr=0.1, weight_decay=0.1))


def test_one_matrix_steps_as_in_torch() -> None:
    """Torch's products and order of operations are not ours: both are off by what bf16 is."""
    draw = torch.Generator().manual_seed(0)
    first, grad = (torch.randn(32, 64, generator=draw) for _ in range(2))
    ours, theirs = nn.Parameter(first.clone()), nn.Parameter(first.clone())
    membership = sort_parameters({"w": (32, 64)}, [Rule(pattern="w", cut=Whole())])
    config = MuonConfig(
        lr=0.1,
        scale="original",
        momentum_form="ema",
        weight_decay=0.1,
        orthogonalize=NewtonSchulzConfig(form="plain"),
    )
    optimizers: tuple[torch.optim.Optimizer, ...] = (
        Muon({"w": ours}, membership, config),
        torch.optim.Muon([theirs], lr=0.1, weight_decay=0.1),
    )
    for _ in range(2):
        ours.grad, theirs.grad = grad.clone(), grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    moved = (theirs - first).norm()
    assert (ours - theirs).norm() < 0.02 * moved


@pytest.mark.parametrize("make", [Muon, ReferenceMuon])
def test_a_parameter_without_a_gradient_goes_on_with_its_momentum(
    make: Callable[[Parameters, Membership, MuonConfig], Any],
) -> None:
    found = []
    for last in (None, "zeros"):
        named, membership = toy_parameters()
        optimizer = make(named, membership, MuonConfig(lr=0.1))
        set_gradients(named, step=0)
        optimizer.step()
        before = named["rows"].detach().clone()
        for parameter in named.values():
            parameter.grad = None if last is None else torch.zeros_like(parameter)
        optimizer.step()
        assert not torch.equal(named["rows"], before)
        found.append(named)
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_goes_on_from_a_saved_state_to_the_bit(dtype: torch.dtype) -> None:
    config = MuonConfig(lr=0.1)
    (named, membership), (restored, _) = toy_parameters(dtype), toy_parameters(dtype)
    optimizer = Muon(named, membership, config)
    set_gradients(named, step=0)
    optimizer.step()
    other = Muon(restored, membership, config)
    other.load_state_dict(optimizer.state_dict())
    for name, it in restored.items():
        it.data.copy_(named[name])
    for both, stepping in ((named, optimizer), (restored, other)):
        set_gradients(both, step=1)
        stepping.step()
    assert all(torch.equal(named[name], restored[name]) for name in named)
    assert all(it["momentum_buffer"].dtype == torch.float32 for it in other.state.values())


def test_the_rate_is_that_of_the_group_and_a_closure_is_called() -> None:
    named, membership = toy_parameters()
    before = {name: it.detach().clone() for name, it in named.items()}
    optimizer = Muon(named, membership, MuonConfig(lr=0.1))
    set_gradients(named, step=0)
    optimizer.param_groups[0]["lr"] = 0.0
    assert optimizer.step(lambda: 3.0) == 3.0
    assert all(torch.equal(named[name], before[name]) for name in named)


def test_a_parameter_that_is_not_contiguous_is_named() -> None:
    membership = sort_parameters({"w": (4, 6)}, [Rule(pattern="w", cut=Whole())])
    with pytest.raises(ValueError, match="w: is not contiguous in memory"):
        Muon({"w": nn.Parameter(torch.ones(6, 4).T)}, membership, MuonConfig())


@pytest.mark.parametrize(
    ("shape", "cut", "num_runs"),
    [
        ((24, 10), Rows(size=8), 1),
        ((12, 20), Columns(size=5), 1),
        ((5, 12, 7), Experts(cut=Split(sizes=(6, 6), cuts=(Whole(), Whole()))), 1),
        ((5, 12, 7), Experts(cut=Columns(size=7)), 1),
        ((9, 4), Split(sizes=(2, 5, 2), cuts=(Whole(), Whole(), Whole())), 2),
        ((8, 4), Split(sizes=(2, 2, 1, 3), cuts=(Whole(), Whole(), Whole(), Whole())), 3),
        ((2, 4, 6), Experts(cut=Columns(size=2)), 2),
    ],
)
def test_runs_view_each_unit_once_and_are_few(
    shape: tuple[int, ...], cut: Cut, num_runs: int
) -> None:
    tensor = torch.arange(Tensor(shape).prod().int().item()).view(shape)
    units = units_of("p", shape, cut)
    runs = list(find_runs(units, rows=shape[-2], row_stride=shape[-1]))
    seen = [matrix.tolist() for run in runs for matrix in run.view_of(tensor)]
    assert sorted(seen) == sorted(view_of(tensor, unit).tolist() for unit in units)
    assert len(runs) == num_runs
    parts = [run.part(i, i + 1) for run in runs for i in range(run.num)]
    assert [part.view_of(tensor)[0].tolist() for part in parts] == seen
