import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.muon.cuts import AdamW, Columns, Cut, Experts, Repeat, Rows, Split, Whole
from trainer.muon.units import Unit, units_of


@st.composite
def cut_matrices(draw: st.DrawFn) -> tuple[tuple[int, ...], Cut]:
    """Draw a shape and a cut that fits it."""
    cols, rows = draw(st.integers(1, 6)) * 2, 0
    parts: list[tuple[int, Cut]] = []
    for _ in range(draw(st.integers(1, 3))):
        size, num = draw(st.integers(1, 4)), draw(st.integers(1, 3))
        kind = draw(st.sampled_from(("whole", "rows", "columns", "repeat")))
        cut: Cut = Whole()
        if kind == "rows":
            cut = Rows(size=size, num=draw(st.sampled_from((None, num))))
        if kind == "columns":
            cut = Columns(size=2)
        if kind == "repeat":
            inner = Split(sizes=(size, 1), cuts=(Whole(), Rows(size=1)))
            cut, size = Repeat(size=size + 1, cut=inner), size + 1
        parts.append((size * num, cut))
        rows += size * num
    whole = Split(sizes=tuple(size for size, _ in parts), cuts=tuple(cut for _, cut in parts))
    if draw(st.booleans()):
        return (draw(st.integers(1, 3)), rows, cols), Experts(cut=whole)
    return (rows, cols), whole


def elements(unit: Unit) -> set[tuple[int, int, int]]:
    box = unit.box
    return {
        (e, r, c) for e in range(*box.experts) for r in range(*box.rows) for c in range(*box.cols)
    }


@given(cut_matrices())
def test_units_cover_a_parameter_once(drawn: tuple[tuple[int, ...], Cut]) -> None:
    shape, cut = drawn
    units = units_of("p", shape, cut)
    found = [it for unit in units for it in elements(unit)]
    experts, rows, cols = (1, *shape)[-3:]
    assert len(found) == len(set(found)) == experts * rows * cols
    assert sum(unit.numel for unit in units) == len(found)
    assert all(unit.shape[0] * unit.shape[1] == unit.numel for unit in units)


@pytest.mark.parametrize(
    ("shape", "cut", "said"),
    [
        ((6, 4), Rows(size=4), "cut 'any number of 4 rows': 6 rows, expected any number of 4"),
        ((8, 4), Rows(size=4, num=3), "8 rows, expected 3 x 4"),
        ((8, 4), Columns(size=3), "4 columns, expected any number of 3"),
        ((8, 4), Repeat(size=3, cut=Whole()), "8 rows, expected any number of 3"),
        ((8, 4), Split(sizes=(3, 4), cuts=(Whole(), Whole())), r"3 \+ 4 rows, expected 8 together"),
        ((8, 4), Experts(cut=Whole()), "what has three dims is cut by experts"),
        ((2, 8, 4), Whole(), "what has three dims is cut by experts"),
        ((8,), Whole(), "expected two or three dims"),
        ((0, 4), Whole(), "none of them empty"),
        ((8, 4), Split(sizes=(8,), cuts=(AdamW(reason="x"),)), "stands inside another cut"),
        ((1, 8, 4), Experts(cut=Experts(cut=Whole())), "stands inside another cut"),
    ],
)
def test_a_cut_that_does_not_fit_is_refused_in_one_line_that_names_the_parameter(
    shape: tuple[int, ...], cut: Cut, said: str
) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        units_of("layers.0.w", shape, cut)
    text = str(refused.value)
    assert text.startswith(f"layers.0.w {list(shape)}, cut '{cut}': ")
    assert "\n" not in text


def test_a_cut_is_told_in_words() -> None:
    head = Split(sizes=(8, 16), cuts=(Whole(), Columns(size=4)))
    assert str(Experts(cut=Repeat(size=24, cut=head, num=4))) == (
        "each expert: 4 x 24 rows: 8 rows (whole) + 16 rows (any number of 4 columns)"
    )
    assert str(AdamW(reason="router")) == "AdamW: router"
