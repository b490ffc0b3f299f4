"""Keep the tensors that a run goes on from, each in the parts that ranks hold of it.

The format is that of `torch.distributed.checkpoint`: what ranks of one layout have written, ranks
of another read.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save


def save_tensors(tensors: Mapping[str, Tensor], place: Path, *, together: bool) -> None:
    """Write tensors into a new folder; `together` with all other ranks, or alone.

    Raises:
        OSError: the disk is full or broken.
    """
    with _plainly():
        save(dict(tensors), checkpoint_id=place, no_dist=not together)


def load_tensors(tensors: Mapping[str, Tensor], place: Path, *, together: bool) -> None:
    """Fill tensors, in place, with what a folder has under their names.

    Raises:
        ValueError: the folder lacks one, or has it in another shape.
    """
    with _plainly():
        load(dict(tensors), checkpoint_id=place, no_dist=not together)


@contextmanager
def _plainly() -> Iterator[None]:
    """Turn what torch raises into errors that say the first thing that went wrong."""
    try:
        with warnings.catch_warnings():
            # It would warn whoever works alone that he does.
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
            yield
    # No `Exception`, and all that it says is a traceback.
    except CheckpointException as error:
        first, _ = next(iter(error.failures.values()))
        if isinstance(first, OSError):
            raise first from error
        raise ValueError(f"{type(first).__name__}: {first}") from error
