"""Write a proposal down as a manifest has it."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from pipeline.manifest import load_manifest
from pipeline.proposal.error import ProposalError
from pipeline.proposal.record import Proposal
from pipeline.task.files import write_whole

MAX_WIDTH = 100
PINS = {"sdist": "sha256", "git": "commit"}


def render(proposal: Proposal) -> str:
    """Return the `[[repo]]` block, with a comment for all that is odd in it."""
    repo = proposal.repo
    source = repo.source
    lines = [
        *_comment(proposal.summary),
        "[[repo]]",
        f"name = {_text(repo.name)}",
        f"{source.kind} = {_text(source.location)}",
        f"{PINS[source.kind]} = {_text(source.pin)}",
        f"licence = {_text(repo.licence)}",
        f"python = {_text(repo.python)}",
        "",
        "[repo.install]",
        *_install(proposal),
        "",
        "[repo.test]",
        *_args(proposal),
        f"wall_s = {repo.test.wall_s:g}",
    ]
    return "".join(f"{line}\n" for line in lines)


def append(proposal: Proposal, *, manifest: Path) -> None:
    """Add a block to the end of a manifest, which may be new.

    Raises:
        ManifestError: the manifest is not one.
        ProposalError: it has a Repo of this name.
    """
    refuse_taken(proposal.repo.name, manifest=manifest)
    before = manifest.read_text(encoding="utf-8").rstrip("\n") if manifest.exists() else ""
    write_whole(manifest, f"{before}\n\n{render(proposal)}".lstrip("\n").encode())


def refuse_taken(name: str, *, manifest: Path) -> None:
    """Make sure that a manifest has no Repo of a name.

    Raises:
        ManifestError: the manifest is not one.
        ProposalError: it has.
    """
    if manifest.exists() and name in {repo.name for repo in load_manifest(manifest)}:
        raise ProposalError(f"{manifest}: {name!r} is there already, expected a new name")


def _install(proposal: Proposal) -> Iterator[str]:
    install = proposal.repo.install
    for key in ("groups", "extras", "requirements", "packages"):
        values = getattr(install, key)
        if values:
            yield from _comment(proposal.install_note if key == "packages" else "")
            yield from _list(key, [_text(value) for value in values])
    yield f"exclude_newer = {install.exclude_newer}"


def _args(proposal: Proposal) -> Iterator[str]:
    args, asides = proposal.repo.test.args, proposal.asides
    own = args[: len(args) - 2 * len(asides)]
    if own:
        yield from _comment(proposal.args_note)
    if not asides:
        yield from _list("args", [_text(arg) for arg in own]) if own else ()
        return
    yield "args = ["
    line = f"    {', '.join(map(_text, own))},"
    if own:
        yield from [line] if len(line) <= MAX_WIDTH else (f"    {_text(arg)}," for arg in own)
    for why, group in groupby(asides, key=lambda it: it.why):
        yield from (f"    {line}" for line in _comment(why))
        yield from (f"    {_text(it.option)}, {_text(it.value)}," for it in group)
    yield "]"


def _list(key: str, items: list[str]) -> list[str]:
    line = f"{key} = [{', '.join(items)}]"
    if len(line) <= MAX_WIDTH:
        return [line]
    return [f"{key} = [", *(f"    {item}," for item in items), "]"]


def _comment(text: str) -> list[str]:
    """Return a comment of one line; foreign text cannot end it."""
    plain = "".join(char for char in " ".join(text.split()) if char.isprintable())
    return [f"# {plain[: MAX_WIDTH - 2]}"] if plain else []


def _text(value: str) -> str:
    """Return a TOML string; its escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
