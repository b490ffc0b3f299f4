import numpy as np
import torch

from trainer.kv import Kept
from trainer.prefixes import Prefixes


def kept(*ids: int) -> Kept:
    """Eight bytes a token."""
    return Kept(
        ids=np.array(ids),
        layers=((torch.ones(1, len(ids), 1), torch.ones(1, len(ids), 1)),),
        experts=torch.empty(len(ids), 0, 0),
    )


def length(prefixes: Prefixes, *ids: int) -> int:
    return prefixes.longest(np.array(ids))[1]


def test_the_longest_common_beginning_is_found_but_never_the_last_token() -> None:
    prefixes = Prefixes(max_bytes=1000)
    for ids in [(1, 2, 3), (1, 2, 9, 9), (4,)]:
        prefixes.add(kept(*ids))
    assert length(prefixes, 1, 2, 3, 7) == 3
    assert length(prefixes, 1, 2, 3) == 2
    assert length(prefixes, 1, 2, 9, 8) == 3
    assert prefixes.longest(np.array([7, 1])) == (None, 0)
    assert prefixes.longest(np.array([4])) == (None, 0)


def test_a_longer_context_replaces_what_it_goes_on_from() -> None:
    prefixes = Prefixes(max_bytes=8 * 5)
    prefixes.add(kept(1, 2))
    prefixes.add(kept(5, 6))
    prefixes.add(kept(1, 2, 3))
    assert length(prefixes, 1, 2, 3, 4) == 3
    assert length(prefixes, 5, 6, 7) == 2


def test_what_was_not_used_for_longest_goes_first() -> None:
    prefixes = Prefixes(max_bytes=8 * 4)
    prefixes.add(kept(1, 2))
    prefixes.add(kept(5, 6))
    assert length(prefixes, 1, 2, 3) == 2
    prefixes.add(kept(8, 9))
    assert [length(prefixes, *ids) for ids in [(1, 2, 3), (5, 6, 7), (8, 9, 0)]] == [2, 0, 2]


def test_what_is_too_large_is_not_kept_and_drives_nothing_out() -> None:
    prefixes = Prefixes(max_bytes=8 * 2)
    prefixes.add(kept(1, 2))
    prefixes.add(kept(5, 6, 7))
    assert length(prefixes, 5, 6, 7, 8) == 0
    assert length(prefixes, 1, 2, 3) == 2


def test_after_new_weights_nothing_is_known() -> None:
    prefixes = Prefixes(max_bytes=8 * 2)
    prefixes.add(kept(1, 2))
    prefixes.clear()
    assert length(prefixes, 1, 2, 3) == 0
    prefixes.add(kept(3, 4))
    assert length(prefixes, 3, 4, 5) == 2
