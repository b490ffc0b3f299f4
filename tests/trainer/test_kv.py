import numpy as np
import torch
from torch import Tensor

from trainer.invariant import GRAIN
from trainer.kv import Rows, join

CPU = torch.device("cpu")


def fed(rows: Rows, states: Tensor) -> tuple[Tensor, Tensor]:
    """Write tokens [B, S] into both layers; return the mask and what may be attended to."""
    _, mask = rows.feed(states.shape[1], device=CPU, dtype=torch.float32)
    shaped = states[:, None, :, None].float()
    seen, _ = rows.update(shaped, -shaped, 0)
    rows.update(10 * shaped, shaped, 1)
    return mask, seen[:, 0, :, 0]


def attended(rows: Rows, states: Tensor) -> list[list[list[float]]]:
    """Return, for each context and new token, the values that it attends to."""
    mask, seen = fed(rows, states)
    return [
        [context[is_seen].tolist() for is_seen in (of[0] == 0)]
        for context, of in zip(seen, mask, strict=True)
    ]


def test_each_context_goes_on_at_its_own_end() -> None:
    rows = Rows(lengths=[0, 0], capacity=GRAIN)
    fed(rows, torch.tensor([[1, 2, 3], [4, 99, 99]]))
    rows.lengths = [3, 1]
    assert attended(rows, torch.tensor([[5], [6]])) == [[[1, 2, 3, 5]], [[4, 6]]]
    rows.lengths = [4, 2]
    assert attended(rows, torch.tensor([[7, 8], [9, 10]])) == [
        [[1, 2, 3, 5, 7], [1, 2, 3, 5, 7, 8]],
        [[4, 6, 9], [4, 6, 9, 10]],
    ]


def test_rows_without_a_context_are_not_kept() -> None:
    rows = Rows(lengths=[0], capacity=GRAIN)
    rows.feed(1, device=CPU, dtype=torch.float32)
    keys, _ = rows.update(torch.ones(16, 1, 1, 1), torch.ones(16, 1, 1, 1), 0)
    assert keys.shape[0] == 1


def test_what_is_kept_of_a_context_begins_another_batch() -> None:
    rows = Rows(lengths=[0, 0], capacity=GRAIN)
    fed(rows, torch.tensor([[1, 2, 3], [4, 5, 99]]))
    kept = rows.keep(1, np.array([40, 50]))
    rows.tensors[0][0].zero_()
    assert kept.num_bytes == 2 * 2 * 2 * 4
    later = Rows(lengths=[0, 1, 2], starts=[None, kept, kept], capacity=2 * GRAIN)
    assert attended(later, torch.tensor([[7], [8], [9]])) == [[[7]], [[4, 8]], [[4, 5, 9]]]


def test_contexts_of_several_batches_go_on_in_one() -> None:
    first, second = (Rows(lengths=[0, 0], capacity=it * GRAIN) for it in (1, 2))
    fed(first, torch.tensor([[1, 2], [3, 4]]))
    fed(second, torch.tensor([[5], [6]]))
    first.lengths, second.lengths = [2, 2], [1, 1]
    joined = join([(second, [1, 0, 1]), (first, [1])], capacity=GRAIN)
    assert joined.lengths == [1, 1, 1, 2]
    assert attended(joined, torch.tensor([[7], [8], [9], [10]])) == [
        [[6, 7]],
        [[5, 8]],
        [[6, 9]],
        [[3, 4, 10]],
    ]


def test_there_is_room_until_the_next_token_does_not_fit() -> None:
    rows = Rows(lengths=[GRAIN - 1, 3], capacity=GRAIN)
    assert rows.has_room
    rows.lengths = [GRAIN, 3]
    assert not rows.has_room
