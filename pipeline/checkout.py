"""Check one commit of a git repository out, without running anything that it names."""

import datetime as dt
import os
from pathlib import Path

import git

from pipeline.task.record import Reject, Source

TIMEOUT_S = 600.0

# Replaces the settings of user and machine: no hooks, helpers, filters or odd transports.
SETTINGS = """\
[safe]
    directory = *
[core]
    hooksPath = /dev/null
    fsmonitor = false
    autocrlf = false
    attributesFile = /dev/null
[protocol]
    allow = never
[protocol "https"]
    allow = always
[protocol "http"]
    allow = always
[protocol "ssh"]
    allow = always
[protocol "git"]
    allow = always
[protocol "file"]
    allow = always
[advice]
    detachedHead = false
[gc]
    auto = 0
"""


def checkout(source: Source, folder: Path) -> str | Reject:
    """Fill an empty folder with the files of a pinned commit; return the commit's ISO date (UTC).

    Submodules are not followed, and attributes that leave files out of archives do not matter.
    """
    settings = folder.with_name(f"{folder.name}.gitconfig")
    settings.write_text(SETTINGS, encoding="utf-8")
    command = git.Git(folder)
    command.update_environment(**_variables(folder, settings))
    command.init("--quiet", "--template=")
    try:
        command.ls_remote("--quiet", source.location, "HEAD", kill_after_timeout=TIMEOUT_S)
    except (git.GitCommandError, git.UnsafeProtocolError) as error:
        return _reject("unreachable", f"{source.location}: {_last_line(error)}")
    try:
        _fetch(command, source)
        command.checkout("--quiet", "--force", "--detach", f"{source.pin}^{{commit}}")
        seconds = command.show("--no-patch", "--format=%ct", source.pin)
    except git.GitCommandError as error:
        return _reject("no_such_commit", f"{source.pin}: {_last_line(error)}")
    missing = _missing(command, folder)
    if missing:
        return _reject("no_such_commit", f"{source.pin}: incomplete, lacks {missing[0]}")
    return dt.datetime.fromtimestamp(int(seconds), tz=dt.UTC).date().isoformat()


def _variables(folder: Path, settings: Path) -> dict[str, str]:
    """Return what makes git ignore the machine's settings and never ask anybody anything."""
    return {
        "GIT_CONFIG_GLOBAL": str(settings),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DIR": str(folder / ".git"),
        "GIT_WORK_TREE": str(folder),
        "GIT_INDEX_FILE": str(folder / ".git" / "index"),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }


def _fetch(command: git.Git, source: Source) -> None:
    """Fetch the commit alone; where the server does not allow that, everything."""
    options = ("--quiet", "--no-recurse-submodules")
    try:
        command.fetch(
            *options, "--no-tags", "--depth=1", source.location, source.pin,
            kill_after_timeout=TIMEOUT_S,
        )  # fmt: skip
    except git.GitCommandError:
        everything = "+refs/*:refs/fetched/*"
        command.fetch(*options, source.location, everything, kill_after_timeout=TIMEOUT_S)


def _missing(command: git.Git, folder: Path) -> list[str]:
    """List what the commit has and the folder has not; git ends well on some partial checkouts."""
    entries = command.ls_tree("-r", "-z", "--full-tree", "HEAD").split("\0")
    split = (entry.partition("\t") for entry in entries if entry)
    return [
        path for what, _, path in split if " blob " in what and not os.path.lexists(folder / path)
    ]


def _last_line(error: git.GitError) -> str:
    """Return what git said last, without GitPython's frame around it."""
    said = str(error.stderr if isinstance(error, git.GitCommandError) else error)
    lines = said.strip().removeprefix("stderr:").strip(" '\n").splitlines()
    return lines[-1].strip() if lines else "git failed and said nothing"


def _reject(reason: str, detail: str) -> Reject:
    return Reject(stage="fetch", reason=reason, detail=detail)
