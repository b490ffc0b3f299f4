"""Measure what the loss holds at its peak, over a vocabulary of 128k.

Letters of shapes: T tokens, D width of the model, V vocabulary.

Run as `python -m trainer.bench.speed.memory TOKENS CHUNK`: a process of its own knows its peak.
"""

import re
import subprocess
import sys
from pathlib import Path

import torch
from torch import Tensor

from trainer.head import token_logprobs

VOCABULARY = 131072
WIDTH = 32


def peak_bytes(num_tokens: int, *, chunk: int) -> int:
    """Return what a forward and a backward pass hold at once besides inputs and gradients."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(num_tokens), str(chunk)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return int(done.stdout)


def _main(num_tokens: int, chunk: int) -> None:
    torch.set_num_threads(1)
    hidden_TD = torch.randn(num_tokens, WIDTH, requires_grad=True)
    weight_VD = torch.randn(VOCABULARY, WIDTH, requires_grad=True)
    ids_T = torch.randint(VOCABULARY, (num_tokens,))
    # What the first pass allocates for good is none of the loss's.
    _backward(hidden_TD[:1], weight_VD, ids_T[:1], chunk=1)
    before = _resident("VmRSS")
    # From here on the peak counts anew.
    Path("/proc/self/clear_refs").write_text("5")
    _backward(hidden_TD, weight_VD, ids_T, chunk=chunk)
    sys.stdout.write(str(_resident("VmHWM") - before))


def _backward(hidden_TD: Tensor, weight_VD: Tensor, ids_T: Tensor, *, chunk: int) -> None:
    logprobs_T = token_logprobs(hidden_TD, weight_VD, ids_T, temperature=1.0, chunk=chunk)
    torch.autograd.backward(logprobs_T.sum())


def _resident(name: str) -> int:
    """Return a figure of this process in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None, name
    return int(found[1]) * 1024


if __name__ == "__main__":
    _main(*map(int, sys.argv[1:]))
