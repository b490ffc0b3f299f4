"""`regrow add-repo`: propose a manifest entry for a project by trying."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cache import cache_folder
from pipeline.commands.interrupt import stoppable_sandbox
from pipeline.commands.say import (
    BAD_INPUT,
    ERR,
    end,
    one_line,
    one_line_errors,
    print_json,
)
from pipeline.commands.scratch import command_scratch
from pipeline.desk import Folders
from pipeline.index import package_index
from pipeline.proposal.block import append as append_to
from pipeline.proposal.block import refuse_taken, render
from pipeline.proposal.error import ProposalError
from pipeline.proposal.propose import propose
from pipeline.proposal.record import Proposal, Shop, Wish
from pipeline.proposal.source import name_of
from pipeline.sandbox.choose import SandboxName


def add_repo(
    target: Annotated[
        str, typer.Argument(help="NAME==VERSION of a release, or a git repository's URL or folder.")
    ],
    append: Annotated[
        Path | None, typer.Option(help="Manifest that the entry is added to, if it works.")
    ] = None,
    licence: Annotated[
        str, typer.Option(help="SPDX expression, once you have read the licence yourself.")
    ] = "",
    arg: Annotated[
        list[str] | None,
        typer.Option(help="Argument of pytest, again for each; the usual ones are tried else."),
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option(help="What the tests need, again for each; looked for in the project else."),
    ] = None,
    python: Annotated[str, typer.Option(help="Interpreter, as major.minor.")] = "3.11",
    sandbox: Annotated[
        SandboxName, typer.Option(help="Back end that runs untrusted code.")
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Try a project's suite in the sandbox and print a [[repo]] block that works."""
    with one_line_errors():
        try:
            wish = Wish(
                target=target,
                python=python,
                licence=licence,
                args=tuple(arg or ()),
                packages=tuple(package or ()),
            )
            proposal = _proposed(wish, sandbox=sandbox, manifest=append)
            if append is not None:
                append_to(proposal, manifest=append)
        except ProposalError as error:
            end(str(error), code=BAD_INPUT)
    _show(proposal, as_json=json)


def _proposed(wish: Wish, *, sandbox: SandboxName, manifest: Path | None) -> Proposal:
    """Try, and refuse before that what would be refused after it."""
    name = name_of(wish.target)
    if manifest is not None:
        refuse_taken(name, manifest=manifest)
    with (
        command_scratch(cache_folder() / "scratch") as scratch,
        stoppable_sandbox(sandbox, message="stopped; nothing is proposed") as box,
    ):
        folders = Folders(
            run=scratch / "run",
            cache=cache_folder(),
            index=package_index(),
            scratch=scratch / "work",
        )
        return propose(wish, shop=Shop(folders=folders, sandbox=box, say=_say))


def _say(line: str) -> None:
    ERR.print(one_line(line), soft_wrap=True)


def _show(proposal: Proposal, *, as_json: bool) -> None:
    block = render(proposal)
    if not as_json:
        typer.echo(block, nl=False)
        return
    baseline = proposal.baseline
    print_json({
        "name": proposal.repo.name,
        "block": block,
        "licence": proposal.repo.licence,
        "num_passing": len(baseline.passing),
        "num_quarantined": len(baseline.quarantined),
        "cpu_s": max(baseline.cpu_s),
        "asides": [
            {"option": it.option, "value": it.value, "why": it.why} for it in proposal.asides
        ],
    })
