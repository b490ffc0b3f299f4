import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from trainer.muon.config import NewtonSchulzConfig
from trainer.muon.orthogonalize import Scratch, orthogonalize
from trainer.muon.polar import exact_newton_schulz, polar_factor

FORMS = ("plain", "folded", "gram")
COEFFICIENTS = ("jordan", "polar_express", "deepseek_v4")
SHAPES = ((16, 64), (64, 16), (32, 32), (1, 40), (40, 1), (1, 1), (48, 37), (7, 5))


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def config(**given: object) -> NewtonSchulzConfig:
    return NewtonSchulzConfig.model_validate(given)


def gaussian(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def with_decades(rows: int, cols: int, *, decades: int) -> Tensor:
    """Return a matrix whose singular values lie evenly over powers of ten."""
    left, values, right = torch.linalg.svd(gaussian(rows, cols).double(), full_matrices=False)
    return (left * torch.logspace(0, -decades, len(values), dtype=torch.float64)) @ right


def apart(one: Tensor, other: Tensor) -> float:
    return float((one.double() - other).norm() / other.norm())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("coefficients", COEFFICIENTS)
@pytest.mark.parametrize("form", FORMS)
def test_in_double_precision_each_form_is_the_polynomial_of_the_singular_values(
    form: str, coefficients: str, shape: tuple[int, int]
) -> None:
    chosen = config(form=form, coefficients=coefficients, dtype="float64")
    matrices = gaussian(3, *shape)
    found = orthogonalize(matrices, config=chosen)
    assert found.dtype == torch.float64
    # Gram matrices of long chains lose digits; a wrong product is off by tenths.
    assert apart(found, exact_newton_schulz(matrices, config=chosen)) < 1e-6


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("form", "dtype", "tolerance"),
    [
        ("plain", "float32", 1e-4),
        ("folded", "float32", 1e-4),
        ("gram", "float32", 1e-4),
        ("plain", "float16", 0.02),
        ("folded", "float16", 0.02),
        ("gram", "float16", 0.02),
        ("plain", "bfloat16", 0.04),
        ("folded", "bfloat16", 0.08),
    ],
)
def test_gaussian_matrices_come_out_as_in_exact_arithmetic(
    form: str, dtype: str, tolerance: float, shape: tuple[int, int]
) -> None:
    chosen = config(form=form, dtype=dtype)
    matrices = gaussian(4, *shape) * 1e-4
    found = orthogonalize(matrices, config=chosen)
    assert apart(found, exact_newton_schulz(matrices, config=chosen)) < tolerance


@pytest.mark.parametrize("shape", [(32, 64), (64, 32)])
@pytest.mark.parametrize(
    ("form", "dtype", "tolerance"),
    [
        ("plain", "float32", 1e-3),
        ("folded", "float32", 1e-3),
        ("gram", "float32", 1e-2),
        ("gram", "float16", 0.1),
        ("plain", "bfloat16", 0.2),
        ("folded", "bfloat16", 0.2),
    ],
)
def test_singular_values_over_four_decades_come_out_as_in_exact_arithmetic(
    form: str, dtype: str, tolerance: float, shape: tuple[int, int]
) -> None:
    chosen = config(form=form, dtype=dtype)
    matrix = with_decades(*shape, decades=4).float()
    found = orthogonalize(matrix, config=chosen)
    assert apart(found, exact_newton_schulz(matrix, config=chosen)) < tolerance


@pytest.mark.parametrize("form", ["plain", "folded"])
def test_rounding_to_bf16_takes_no_matrix_further_from_its_polar_factor(form: str) -> None:
    matrices = gaussian(8, 64, 256)
    exact = exact_newton_schulz(matrices, config=config())
    found = orthogonalize(matrices, config=config(form=form))
    polar = polar_factor(matrices)
    assert apart(found, polar) < apart(exact, polar) + 0.01


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_size_does_not_matter_and_zeros_stay_zeros(form: str, dtype: str) -> None:
    chosen = config(form=form, dtype=dtype)
    one = gaussian(16, 32)
    batch = torch.stack([one, torch.zeros(16, 32), one * 2.0**-30, one * 2.0**30])
    plain, zero, small, large = orthogonalize(batch, config=chosen)
    assert torch.equal(small, plain)
    assert torch.equal(large, plain)
    assert not zero.any()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_spoils_its_own_matrix_alone(wrong: float) -> None:
    batch = gaussian(3, 8, 12)
    expected = orthogonalize(batch, config=config())
    batch[1, 2, 3] = wrong
    found = orthogonalize(batch, config=config())
    assert not found[1].isfinite().any()
    assert torch.equal(found[[0, 2]], expected[[0, 2]])


batches = st.tuples(st.integers(2, 9), st.integers(1, 70), st.integers(1, 70))
kinds = st.fixed_dictionaries({
    "form": st.sampled_from(FORMS),
    "dtype": st.sampled_from(("bfloat16", "float16", "float32", "float64")),
    "chunk_bytes": st.sampled_from((1, 2**12, 2**21)),
})


@settings(deadline=None, max_examples=40)
@given(shape=batches, kind=kinds, threads=st.sampled_from((1, 2)), data=st.data())
def test_the_bits_of_a_result_do_not_depend_on_what_a_matrix_is_batched_with(
    shape: tuple[int, int, int], kind: dict[str, object], threads: int, data: st.DataObject
) -> None:
    torch.set_num_threads(threads)
    num = shape[0]
    first = data.draw(st.integers(0, num - 1))
    end = data.draw(st.integers(first + 1, num))
    matrices = gaussian(*shape)
    whole = orthogonalize(matrices, config=config(**kind))
    chosen = config(**kind | {"chunk_bytes": 2**21})
    part = orthogonalize(matrices[first:end].clone(), config=chosen)
    assert torch.equal(part, whole[first:end])
    assert torch.equal(orthogonalize(matrices[first], config=chosen), whole[first])


@pytest.mark.parametrize("shape", [(8, 16), (16, 16), (16, 32), (17, 17), (7, 5), (17, 40)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_nor_do_those_of_matrices_so_small_that_a_batch_is_multiplied_by_another_library(
    dtype: str, shape: tuple[int, int]
) -> None:
    """In batches, one of some hundreds of them had other bits before they were done one by one."""
    matrices = gaussian(400, *shape)
    whole = orthogonalize(matrices, config=config(dtype=dtype))
    for size in (1, 2, 9):
        parts = [orthogonalize(it, config=config(dtype=dtype)) for it in matrices.split(size)]
        assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize("shape", [(64, 512), (512, 64), (256, 512), (1, 40000), (129, 300)])
@pytest.mark.parametrize("form", ["plain", "folded"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_bits_of_large_matrices_do_not_depend_on_it_either(
    dtype: str, form: str, shape: tuple[int, int]
) -> None:
    chosen = config(form=form, dtype=dtype)
    matrices = gaussian(5, *shape)
    whole = orthogonalize(matrices, config=chosen)
    for part in (slice(0, 1), slice(2, 3), slice(1, 4), slice(3, 5)):
        assert torch.equal(orthogonalize(matrices[part].clone(), config=chosen), whole[part])


@pytest.mark.parametrize("shape", [(2, 3, 8, 4), (5, 4, 8), (4, 8), (0, 4, 8), (2, 0, 8)])
def test_the_shape_stays_and_the_argument_too(shape: tuple[int, ...]) -> None:
    matrices = gaussian(*shape).bfloat16()
    before = matrices.clone()
    found = orthogonalize(matrices, config=config())
    assert (found.shape, found.dtype) == (matrices.shape, torch.bfloat16)
    assert torch.equal(matrices, before)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_bits_do_not_depend_on_how_a_matrix_lies_in_memory(dtype: str) -> None:
    chosen = config(dtype=dtype)
    wide, parts = gaussian(3, 20, 30), gaussian(3, 24, 90)[:, ::2, 40:70]
    for matrices in (wide.mT, parts, wide.mT.contiguous().mT):
        expected = orthogonalize(matrices.contiguous(), config=chosen)
        assert torch.equal(orthogonalize(matrices, config=chosen), expected)


def test_memory_that_is_used_again_changes_nothing() -> None:
    scratch = Scratch()
    for shape in ((4, 16, 32), (2, 32, 16), (9, 8, 8), (4, 16, 32)):
        matrices = gaussian(*shape)
        found = orthogonalize(matrices, config=config(), scratch=scratch)
        assert torch.equal(found, orthogonalize(matrices, config=config()))


def test_a_vector_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \[4\], expected \[\.\.\., rows, columns\]"):
        orthogonalize(torch.ones(4), config=config())
