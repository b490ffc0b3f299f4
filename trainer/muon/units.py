"""Find the units of a model: each matrix that Muon orthogonalizes, a box of a parameter.

Letters: E experts, R rows, C columns. A tensor of two dims is one with E = 1.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from trainer.muon.cuts import AdamW, Cut, Experts, Interval

Shape3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Box:
    """Part of a tensor [E, R, C]."""

    # Each interval is half-open.
    experts: Interval
    rows: Interval
    cols: Interval

    @property
    def numel(self) -> int:
        """Number of elements."""
        (a, b), (c, d), (e, f) = self.experts, self.rows, self.cols
        return (b - a) * (d - c) * (f - e)

    def intersect(self, other: "Box") -> "Box | None":
        """Return what is in both, None for nothing."""
        experts = _overlap(self.experts, other.experts)
        rows = _overlap(self.rows, other.rows)
        cols = _overlap(self.cols, other.cols)
        if experts is None or rows is None or cols is None:
            return None
        return Box(experts=experts, rows=rows, cols=cols)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Unit:
    """One matrix that is orthogonalized on its own."""

    # Its full name in the model.
    parameter: str
    # Of one expert.
    box: Box

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        (a, b), (c, d) = self.box.rows, self.box.cols
        return b - a, d - c

    @property
    def numel(self) -> int:
        """Number of elements."""
        return self.box.numel


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How the parameters of a family are cut."""

    # A regular expression that the whole name of a parameter matches.
    pattern: str
    cut: Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Which optimizer trains what."""

    # Units of each parameter that Muon trains.
    muon: Mapping[str, tuple[Unit, ...]]
    # Why each other parameter is left to AdamW.
    adamw: Mapping[str, str]

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units, parameter by parameter."""
        return tuple(unit for units in self.muon.values() for unit in units)


def sort_parameters(shapes: Mapping[str, tuple[int, ...]], rules: Iterable[Rule]) -> Membership:
    """Cut each parameter by the first rule that matches its name.

    Raises:
        ValueError: no rule matches a parameter, or one does that does not fit its shape.
    """
    find = _finder(rules)
    cuts = {name: find(name) for name in shapes}
    return Membership(
        muon={
            name: units_of(name, shapes[name], cut)
            for name, cut in cuts.items()
            if not isinstance(cut, AdamW)
        },
        adamw={name: cut.reason for name, cut in cuts.items() if isinstance(cut, AdamW)},
    )


def units_of(name: str, shape: tuple[int, ...], cut: Cut) -> tuple[Unit, ...]:
    """Cut one parameter; its units are in the order of their boxes' experts, rows and columns.

    Raises:
        ValueError: the cut does not fit the shape.

    Example:
        >>> from trainer.muon.cuts import Split, Whole
        >>> kv = Split(sizes=(2, 4), cuts=(Whole(), Whole()))
        >>> [unit.shape for unit in units_of("kv", (6, 4), kv)]
        [(2, 4), (4, 4)]
    """
    try:
        boxes = list(_boxes(shape, cut))
    except ValueError as error:
        raise ValueError(f"{name} {list(shape)}, cut '{cut}': {error}") from None
    return tuple(Unit(parameter=name, box=box) for box in boxes)


def _boxes(shape: tuple[int, ...], cut: Cut) -> Iterator[Box]:
    num_experts, num_rows, num_cols = three_dims(shape)
    match cut, shape:
        case (Experts(cut=of_expert), (_, _, _)):
            parts = list(of_expert.parts((0, num_rows), (0, num_cols)))
        case (Experts(), _) | (_, (_, _, _)):
            raise ValueError("what has three dims is cut by experts, and nothing else is")
        case _:
            parts = list(cut.parts((0, num_rows), (0, num_cols)))
    for expert in range(num_experts):
        for rows, cols in parts:
            yield Box(experts=(expert, expert + 1), rows=rows, cols=cols)


def three_dims(shape: tuple[int, ...]) -> Shape3:
    """Return the shape [E, R, C] of a tensor.

    Raises:
        ValueError: it has neither two nor three dims, or none of something.

    Example:
        >>> three_dims((6, 4))
        (1, 6, 4)
    """
    match shape:
        case (rows, cols) if rows and cols:
            return 1, rows, cols
        case (experts, rows, cols) if experts and rows and cols:
            return experts, rows, cols
        case _:
            raise ValueError("expected two or three dims, none of them empty")


def membership_table(
    shapes: Mapping[str, tuple[int, ...]], rules: Iterable[Rule]
) -> list[tuple[str, str, str, int, int]]:
    """Return rows for people: family, cut, shape of a unit, number of units, number of weights.

    Names that differ in numbers are one family; what AdamW trains has no units.
    """
    rules = tuple(rules)
    membership, find = sort_parameters(shapes, rules), _finder(rules)
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    for name, shape in shapes.items():
        units = [
            (f"{it.shape[0]} x {it.shape[1]}", 1, it.numel) for it in membership.muon.get(name, ())
        ]
        for unit_shape, num, numel in units or [("", 0, prod(shape))]:
            key = (_starred(name), str(find(name)), unit_shape)
            num_before, numel_before = sums.get(key, (0, 0))
            sums[key] = (num_before + num, numel_before + numel)
    return [(*key, *both) for key, both in sums.items()]


def _finder(rules: Iterable[Rule]) -> Callable[[str], Cut]:
    compiled = [(re.compile(rule.pattern), rule.cut) for rule in rules]

    def find(name: str) -> Cut:
        for pattern, cut in compiled:
            if pattern.fullmatch(name):
                return cut
        raise ValueError(
            f"{name}: no rule says how Muon cuts it; declare one, such as "
            f"Rule(pattern={re.escape(name)!r}, cut=Whole()) or cut=AdamW(reason=...)"
        )

    return find


def _overlap(one: Interval, other: Interval) -> Interval | None:
    start, end = max(one[0], other[0]), min(one[1], other[1])
    return (start, end) if start < end else None


def _starred(name: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in name.split("."))
