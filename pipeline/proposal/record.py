"""What is asked for, what trying needs, and what is proposed in the end."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from pipeline.desk import Folders
from pipeline.manifest import PERMISSIVE
from pipeline.proposal.error import ProposalError
from pipeline.proposal.licence import permissive
from pipeline.repo import Fetched
from pipeline.sandbox.protocol import Sandbox
from pipeline.task.origin import Repo
from pipeline.task.record import Baseline

VERSION = re.compile(r"3\.\d{1,2}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asks for.

    Example: `Wish(target="toolz==1.2.0")`.
    """

    # `NAME==VERSION`, or the URL or path of a git repository.
    target: str
    # `major.minor` of the interpreter.
    python: str = "3.11"
    # SPDX expression that the person has read; empty to have the files read.
    licence: str = ""
    # Arguments of pytest; none to try the usual ones.
    args: tuple[str, ...] = ()
    # Requirement strings in place of what the project names for its tests.
    packages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no manifest could hold.

        Raises:
            ProposalError: with the value and what was expected.
        """
        if not VERSION.fullmatch(self.python):
            raise ProposalError(f"--python {self.python}: expected a version like 3.11")
        if self.licence and not permissive(self.licence):
            allowed = ", ".join(PERMISSIVE)
            raise ProposalError(f"--licence {self.licence}: expected {allowed}, or AND, OR of them")
        for package in self.packages:
            try:
                Requirement(package)
            except InvalidRequirement:
                raise ProposalError(f"--package {package}: expected a requirement") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Everything that trying needs."""

    folders: Folders
    sandbox: Sandbox
    # Tells the person who waits what is being done, in a line.
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A project whose files are here."""

    fetched: Fetched
    # Folder of its Snapshot.
    tree: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Something of a suite that is not run.

    Example: `Aside(option="--deselect", value="tests/test_net.py::test_ask", why="Fails: …")`.
    """

    # `--deselect` with the start of an id, or `--ignore` with a file.
    option: str
    value: str
    # A sentence for the manifest.
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A manifest entry that works, and why it is as it is."""

    # Its arguments of pytest end with those of `asides`.
    repo: Repo
    asides: tuple[Aside, ...]
    # A line on the project, in its own words; empty when it has none.
    summary: str
    # Sentences on `install` and on the arguments before the asides; empty when nothing is odd.
    install_note: str
    args_note: str
    # Of the suite as it is proposed.
    baseline: Baseline
