"""Try a project's suite in sensible ways until one is green and steady; propose that entry."""

from collections.abc import Iterator
from dataclasses import replace
from email.parser import HeaderParser
from pathlib import Path

from pipeline.proposal.error import ProposalError, accepted
from pipeline.proposal.install import complete
from pipeline.proposal.licence import find_licence, permissive
from pipeline.proposal.record import Proposal, Shop, Subject, Wish
from pipeline.proposal.source import find_source, name_of
from pipeline.proposal.steady import steady
from pipeline.repo import fetch
from pipeline.snapshot import snapshot_tree
from pipeline.static_metadata import load_ini, load_toml, table
from pipeline.task.origin import Install, Repo, TestCommand

CLEARED = ("-o", "addopts=")
# Where suites are, should pytest not find them by itself.
SUITES = ("tests", "test", "tests.py", "test.py")
COVERAGE = "Its options measure coverage."
MAX_NOTE = 80


def propose(wish: Wish, *, shop: Shop) -> Proposal:
    """Return a manifest entry whose suite was green and steady here.

    Raises:
        ProposalError: there is none; a line says why.
        IndexUnreachableError, InstallError, OSError: the machine or its network failed.
        SandboxStoppedError, SandboxBrokenError: nothing was learnt about the project.
    """
    repo, subject = _fetched(wish, shop=shop)
    faults: list[ProposalError] = []
    note = ""
    for args, args_note in _commands(wish, subject.tree):
        shop.say(f"pytest {' '.join(args)}".rstrip())
        asked = replace(repo, test=replace(repo.test, args=args))
        trial = complete(asked, note=note, subject=subject, shop=shop)
        repo, note = trial.repo, trial.note
        try:
            found = steady(trial, subject=subject, shop=shop)
        except ProposalError as error:
            shop.say(str(error))
            faults.append(error)
            continue
        because = f"With its own options: {faults[0]}"[:MAX_NOTE] if args and faults else ""
        return replace(found, summary=_summary(subject), args_note=args_note or because)
    raise faults[0]


def _fetched(wish: Wish, *, shop: Shop) -> tuple[Repo, Subject]:
    """Get the files, and start from an entry that leaves everything to be found."""
    folders = shop.folders
    repo = Repo(
        name=name_of(wish.target),
        source=find_source(wish.target, index=folders.index),
        licence=wish.licence,
        python=wish.python,
        install=Install(packages=wish.packages),
        test=TestCommand(args=wish.args),
    )
    shop.say(f"{repo.name}: {repo.source.kind} {repo.source.pin}")
    fetched = accepted(fetch(repo, into=folders.run, cache=folders.cache, index=folders.index))
    tree = snapshot_tree(fetched.archive, cache=folders.cache)
    dated = replace(repo.install, exclude_newer=fetched.snapshot.released)
    licence = permissive(wish.licence) or find_licence(tree, fetched.project)
    shop.say(f"licence {licence}, released {fetched.snapshot.released}")
    return replace(repo, licence=licence, install=dated), Subject(fetched=fetched, tree=tree)


def _commands(wish: Wish, tree: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield arguments of pytest to try, the likeliest first, and a sentence on each."""
    if wish.args:
        yield wish.args, ""
        return
    options = _options(tree)
    measures = "--cov" in options
    if not measures:
        yield (), ""
    if options:
        yield CLEARED, COVERAGE if measures else ""
    for suite in SUITES:
        if (tree / suite).exists():
            yield (*(CLEARED if options else ()), suite), COVERAGE if measures else ""


def _options(tree: Path) -> str:
    """Return the options that a tree's configuration gives to pytest; empty without any."""
    tool = table(load_toml(tree / "pyproject.toml"), "tool", "pytest")
    stated = [
        table(tool, "ini_options").get("addopts"),
        tool.get("addopts"),
        table(load_toml(tree / "pytest.toml"), "pytest").get("addopts"),
        *(
            load_ini(tree / file).get(section, "addopts", fallback=None)
            for file, section in (
                ("pytest.ini", "pytest"),
                (".pytest.ini", "pytest"),
                ("tox.ini", "pytest"),
                ("setup.cfg", "tool:pytest"),
            )
        ),
    ]
    return " ".join(str(value) for value in stated if value)


def _summary(subject: Subject) -> str:
    headers = HeaderParser().parsestr(subject.fetched.project.metadata)
    project = table(load_toml(subject.tree / "pyproject.toml"), "project")
    return " ".join(str(headers["Summary"] or project.get("description") or "").split())
