import pytest

from tests.trainer.forked import on_ranks
from trainer.mesh import DENSE, EXPERTS, MeshConfig, layout_rows, make_meshes, place_of
from trainer.ranks import Ranks

# Two copies of the dense weights beside one of the experts, which eight ranks share.
NARROW_AND_WIDE = MeshConfig(dense_replicate=2, context=2, expert_parallel=8)


def test_the_two_views_have_replicas_of_their_own() -> None:
    places = [place_of(rank, NARROW_AND_WIDE, world=8) for rank in range(8)]
    assert [it.dense_replicate for it in places] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [it.dense_shard for it in places] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert {it.expert_replicate for it in places} == {0}
    assert [it.expert_parallel for it in places] == [*range(8)]


def test_ranks_that_share_a_row_are_neighbours_in_one_dense_group() -> None:
    places = [place_of(rank, NARROW_AND_WIDE, world=8) for rank in range(8)]
    assert [(it.data, it.context) for it in places] == [(rank // 2, rank % 2) for rank in range(8)]
    for data in range(4):
        assert len({it.dense_replicate for it in places if it.data == data}) == 1


def test_a_table_of_the_layout_has_a_row_a_rank_and_no_place_twice() -> None:
    rows = layout_rows(MeshConfig(expert_replicate=2, expert_parallel=2), world=8)
    assert [row[0] for row in rows] == [*range(8)]
    assert len({row[5:] for row in rows}) == 8
    assert rows[5] == (5, 0, 5, 5, 0, 1, 0, 1)


def test_torch_gets_the_groups_of_the_table() -> None:
    def work(ranks: Ranks) -> list[tuple[int, ...]]:
        meshes = make_meshes(NARROW_AND_WIDE, world=8)
        axes = [(meshes.dense, DENSE), (meshes.experts, EXPERTS)]
        found = [mesh.get_local_rank(name) for mesh, names in axes for name in names]
        return [(ranks.rank, *found)]

    for rank, ((number, *found),) in enumerate(on_ranks(8, work)):
        place = place_of(rank, NARROW_AND_WIDE, world=8)
        assert number == rank
        assert found == [getattr(place, name) for name in (*DENSE, *EXPERTS)]


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ({"dense_replicate": 3}, r"dense view: dense_replicate 3 x context 1 = 3 on 8 ranks"),
        (
            {"dense_replicate": 4, "context": 4},
            r"dense view: .*= 16 on 8 ranks; expected a divisor",
        ),
        ({"expert_replicate": 2, "expert_parallel": 8}, r"expert view: .*= 16 on 8 ranks"),
    ],
)
def test_sizes_that_do_not_multiply_to_the_world_are_refused(
    sizes: dict[str, int], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        place_of(0, MeshConfig.model_validate(sizes), world=8)
