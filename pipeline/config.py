"""The settings of one run of the factory."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pipeline.desk import Folders

SandboxName = Literal["auto", "bubblewrap"]
AgentName = Literal["scripted"]
RunnerName = Literal["laptop", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `regrow generate` was asked for, besides the Repos.

    Example: `Settings(out=Path("runs/quickstart"), cache=Path("…"), max_tasks=12)`.
    """

    # The run folder.
    out: Path
    # Downloads, trees and environments that runs share.
    cache: Path
    # URL of the package index.
    index: str
    # Tasks wanted of each Repo; None for every candidate that validates.
    max_tasks: int | None = None
    seed: int = 0
    # Sandboxes at work at once.
    jobs: int = 2
    sandbox: SandboxName = "auto"
    agent: AgentName = "scripted"

    @property
    def folders(self) -> Folders:
        """Where the run keeps things."""
        return Folders(run=self.out, cache=self.cache, index=self.index, scratch=self.out / "work")


@cache
def code_digest() -> str:
    """Return the sha256 of this package's files: results of other code are not resumed from."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    templates = root.parent / "task_templates"
    for file in sorted([*root.rglob("*.py"), *templates.glob("*.j2")]):
        digest.update(file.relative_to(root.parent).as_posix().encode() + b"\0")
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()
