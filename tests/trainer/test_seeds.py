from itertools import combinations

import torch

from trainer.seeds import derive, generator


def test_the_same_parts_give_the_same_draws_and_others_give_others() -> None:
    drawn = [torch.rand(4, generator=generator(7, "episode", 3)) for _ in range(2)]
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0], torch.rand(4, generator=generator(8, "episode", 3)))


def test_parts_are_told_apart() -> None:
    parts = [("a", "bc"), ("ab", "c"), ("abc",), (1,), ("1",), (1, 1), (11,), ("a", ""), ("a",)]
    assert not [
        pair for pair in combinations(parts, 2) if derive(0, *pair[0]) == derive(0, *pair[1])
    ]


def test_a_seed_is_the_same_in_every_process_and_fits_into_63_bits() -> None:
    assert derive(7, "episode", "12-toolz.0", 0, 3) == 7056989438556586137
    assert min(derive(0, number) for number in range(99)) >= 0
    assert max(derive(0, number) for number in range(99)) < 2**63
