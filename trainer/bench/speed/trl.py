"""Have TRL's GRPOTrainer do the same work, by a Python of its own that has it."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.bench.speed.steps import LR
from trainer.bench.speed.workload import Rollout

SCRIPT = Path(__file__).parent / "inside" / "trl_peer.py"


class PeerFailedError(RuntimeError):
    """TRL did not do its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What TRL is to do."""

    model: Path
    # Where it may write.
    scratch: Path
    num_steps: int
    num_prompts: int
    group: int
    # Rollouts in one forward pass.
    micro_batch: int
    # To replay; else TRL samples from the prompts.
    steps: Sequence[Sequence[Rollout]] = ()
    prompts: Sequence[str] = ()
    # Each sample has just so many tokens.
    new_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What its steps took and came to."""

    # Of each step but the first.
    cpu_s: tuple[float, ...]
    # Of each step, before clipping.
    grad_norms: tuple[float, ...]


def require_peer(peer: Path) -> None:
    """Refuse a folder that is no virtual environment.

    Raises:
        ValueError: there is no Python in it.
    """
    if not (peer / "bin" / "python").is_file():
        raise ValueError(f"{peer}: no bin/python in it, expected a virtual environment with TRL")


def run_trl(job: Job, *, peer: Path) -> Answer:
    """Run TRL on one thread, by the Python of a virtual environment.

    Raises:
        PeerFailedError: it stopped with an error.
    """
    job.scratch.mkdir(parents=True, exist_ok=True)
    path = job.scratch / "job.json"
    path.write_text(json.dumps(_to_json(job)))
    done = subprocess.run(
        [peer / "bin" / "python", SCRIPT, path],
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        cwd=job.scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerFailedError(f"TRL: status {done.returncode}: {last}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return Answer(cpu_s=tuple(answer["cpu_s"]), grad_norms=tuple(answer["grad_norms"]))


def _to_json(job: Job) -> dict[str, object]:
    lengths = [len(rollout.completion_ids) for step in job.steps for rollout in step]
    return {
        "model": str(job.model),
        "scratch": str(job.scratch),
        "num_steps": job.num_steps,
        "num_prompts": job.num_prompts,
        "group": job.group,
        "micro_batch": job.micro_batch,
        "steps": [[rollout.to_json() for rollout in step] for step in job.steps],
        # TRL draws prompts even for rollouts that are given.
        "prompts": list(job.prompts) or ["."] * (job.num_steps * job.num_prompts),
        "new_tokens": job.new_tokens,
        "longest": max(lengths, default=job.new_tokens),
        "lr": LR,
    }
