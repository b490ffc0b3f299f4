import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.muon import layout as layout_module
from trainer.muon.layout import Replicate, Shard, box_of, lay_out


def test_chunks_are_of_the_ceiling_so_that_last_ranks_hold_less_or_nothing() -> None:
    layout = lay_out("experts", (6, 4, 5), mesh=np.arange(5), placements=(Shard(dim=0),))
    held = [box_of(layout, rank) for rank in range(5)]
    assert [box and box.experts for box in held] == [(0, 2), (2, 4), (4, 6), None, None]


def test_axes_that_cut_one_dim_cut_from_left_to_right() -> None:
    mesh = np.arange(4).reshape(2, 2)
    layout = lay_out("up", (7, 2), mesh=mesh, placements=(Shard(dim=0), Shard(dim=0)))
    held = [box_of(layout, rank) for rank in range(4)]
    assert [box and box.rows for box in held] == [(0, 2), (2, 4), (4, 6), (6, 7)]


def test_a_strided_axis_cuts_what_the_axis_to_its_right_has_cut() -> None:
    mesh = np.arange(4).reshape(2, 2)
    placements = (Shard(dim=0, is_strided=True), Shard(dim=0))
    layout = lay_out("experts", (7, 2, 2), mesh=mesh, placements=placements)
    held = [box_of(layout, rank) for rank in range(4)]
    assert [box and box.experts for box in held] == [(0, 2), (4, 6), (2, 4), (6, 7)]


def test_copies_are_in_the_order_of_the_mesh_in_every_piece() -> None:
    mesh = np.array([[5, 3], [2, 4]])
    layout = lay_out("up", (4, 2), mesh=mesh, placements=(Replicate(), Shard(dim=0)))
    assert [piece.ranks for piece in layout.pieces] == [(5, 2), (3, 4)]


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(1, 9), min_size=2, max_size=3),
    st.data(),
)
def test_each_element_is_in_one_piece_and_all_pieces_have_as_many_copies(
    axes: list[int], shape: list[int], data: st.DataObject
) -> None:
    dims = st.integers(0, len(shape) - 1)
    shards = st.builds(Shard, dim=dims, is_strided=st.booleans())
    placements = tuple(data.draw(st.just(Replicate()) | shards) for _ in axes)
    mesh = np.arange(np.prod(axes)).reshape(axes)
    layout = lay_out("p", tuple(shape), mesh=mesh, placements=placements)
    counts = np.zeros(layout.shape, dtype=int)
    for piece in layout.pieces:
        counts[slice(*piece.box.experts), slice(*piece.box.rows), slice(*piece.box.cols)] += 1
    assert (counts == 1).all()
    replicas = [size for size, it in zip(axes, placements, strict=True) if it == Replicate()]
    assert {len(piece.ranks) for piece in layout.pieces} == {int(np.prod(replicas))}


def test_placements_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="up: 2 placements on a mesh of 1 axes"):
        lay_out("up", (4, 2), mesh=np.arange(2), placements=(Replicate(), Replicate()))
    with pytest.raises(ValueError, match=r"up \[4, 2\]: Shard\(dim=2.*expected one of its dims"):
        lay_out("up", (4, 2), mesh=np.arange(2), placements=(Shard(dim=2),))


def test_the_examples_of_the_module_are_true() -> None:
    assert doctest.testmod(layout_module).failed == 0
