import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.pack import pack, pack_rows


@given(
    lengths=st.lists(st.integers(min_value=1, max_value=50)),
    budget=st.integers(min_value=1, max_value=60),
)
def test_each_row_is_in_one_bin_and_no_bin_is_over_budget_unless_its_one_row_is(
    lengths: list[int], budget: int
) -> None:
    bins = pack(lengths, budget=budget)
    assert sorted(index for members in bins for index in members) == list(range(len(lengths)))
    for members in bins:
        assert members
        assert len(members) == 1 or sum(lengths[index] for index in members) <= budget


def test_rows_are_shared_out_from_the_longest_to_the_first_bin_that_has_room() -> None:
    assert pack([5, 3, 9, 2], budget=8) == [[0, 1], [2], [3]]
    assert pack([2, 2, 6, 5], budget=8) == [[0, 2], [1, 3]]


def test_of_equal_rows_the_first_come_first() -> None:
    assert pack([4, 4, 4, 4, 4], budget=8) == [[0, 1], [2, 3], [4]]


def test_rows_that_are_packed_keep_their_ids_and_count_from_zero() -> None:
    ids = np.array([7, 8, 9])
    # As read from a file.
    ids.flags.writeable = False
    packed = pack_rows([ids, np.array([5]), np.array([1, 2])])
    assert torch.equal(packed.input_ids_1T, torch.tensor([[7, 8, 9, 5, 1, 2]]))
    assert torch.equal(packed.position_ids_1T, torch.tensor([[0, 1, 2, 0, 0, 1]]))
    assert packed.starts == (0, 3, 4, 6)


def test_a_row_without_tokens_is_our_mistake() -> None:
    with pytest.raises(AssertionError, match="rows of"):
        pack_rows([np.array([], dtype=np.int64), np.array([1])])
