import sys
from pathlib import Path

import pytest

from trainer.bench.speed.models import save_model
from trainer.bench.speed.trl import Job, PeerFailedError, run_trl


def test_a_peer_without_trl_is_named_in_one_line(tmp_path: Path) -> None:
    """This Python has no TRL."""
    python = tmp_path / "peer" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    save_model(tmp_path / "model", "tiny")
    job = Job(
        model=tmp_path / "model",
        scratch=tmp_path / "scratch",
        num_steps=1,
        num_prompts=1,
        group=2,
        micro_batch=2,
        prompts=["a"],
        new_tokens=4,
    )
    with pytest.raises(PeerFailedError, match=r"^TRL: status 1: ModuleNotFoundError: .*'trl'$"):
        run_trl(job, peer=tmp_path / "peer")
