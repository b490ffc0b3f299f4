"""Check one commit of a git repository out, without running anything that it names."""

import datetime as dt
import os
import re
from pathlib import Path

import git

from pipeline.task.origin import Source
from pipeline.task.reject import Reject

TIMEOUT_S = 600.0

# A full disk ends the transport as well, and a lacking object the answer: hence in this order.
DISK = re.compile(
    r"^(?!.*remote: ).*(No space left|quota exceeded|Read-only file system|[Oo]ut of memory)",
    re.MULTILINE,
)
ABSENT = re.compile(
    r"Needed a single revision|bad object|could not get object info"
    r"|unable to read (tree |sha1 file of .*)?\(?[0-9a-f]{40}"
)
TRANSPORT = re.compile(
    r"Timeout: the command|unable to access|Could not read from remote|requested URL returned"
    r"|RPC failed|early EOF|hung up|disconnect|[Cc]onnect(ion)? |Broken pipe|timed out"
    r"|read error|protocol error|packet write failed"
    r"|[Cc]ould not resolve|Authentication failed|could not read Username|not appear to be a git"
)

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

    Raises:
        OSError: git is missing or broken, or the disk is full.
    """
    command = _command(folder)
    try:
        command.init("--quiet", "--template=")
        silence = _ask(command, source)
        if silence is not None:
            return silence
        _fetch(command, source)
        commit = command.rev_parse("--verify", f"{source.pin}^{{commit}}")
        command.checkout("--quiet", "--force", "--detach", commit)
        _check_complete(command, folder)
        seconds = command.show("--no-patch", "--format=%ct", commit)
    except git.CommandError as error:
        return _judge(error, source)
    return dt.datetime.fromtimestamp(int(seconds), tz=dt.UTC).date().isoformat()


def find_head(location: str, *, folder: Path) -> str | Reject:
    """Return the full commit that a repository's HEAD names.

    Args:
        location: URL or absolute path of the repository.
        folder: any that is ours; git's settings are written beside it.

    Raises:
        OSError: git is missing or broken.
    """
    try:
        lines = str(_command(folder).ls_remote(location, "HEAD", kill_after_timeout=TIMEOUT_S))
    except git.GitCommandNotFound as error:
        raise OSError(f"git is not installed, {location} needs it") from error
    except (git.GitCommandError, git.UnsafeProtocolError) as error:
        return _reject("unreachable", f"{location}: {_last_line(error)}")
    commit, _, _ = lines.partition("\t")
    return commit or _reject("no_such_commit", f"{location}: no commit yet")


def _command(folder: Path) -> git.Git:
    settings = folder.with_name(f"{folder.name}.gitconfig")
    settings.write_text(SETTINGS, encoding="utf-8")
    command = git.Git(folder)
    command.update_environment(**_variables(folder, settings))
    return command


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


def _ask(command: git.Git, source: Source) -> Reject | None:
    """Make sure that there is a repository; any trouble is its host's, nothing is written yet."""
    try:
        command.ls_remote("--quiet", source.location, "HEAD", kill_after_timeout=TIMEOUT_S)
    except (git.GitCommandError, git.UnsafeProtocolError) as error:
        return _reject("unreachable", f"{source.location}: {_last_line(error)}")
    return None


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


def _check_complete(command: git.Git, folder: Path) -> None:
    """Make sure that the folder has all that the commit has; git ends well on partial checkouts.

    Raises:
        git.GitCommandError: the repository lacks the object.
        OSError: it has the object, so the machine failed to write the file.
    """
    entries = command.ls_tree("-r", "-z", "--full-tree", "HEAD").split("\0")
    for what, _, path in (entry.partition("\t") for entry in entries if entry):
        if " blob " in what and not os.path.lexists(folder / path):
            command.cat_file("-t", what.split()[-1])
            raise OSError(f"git did not write {path}")


def _judge(error: git.CommandError, source: Source) -> Reject:
    """Say what a failure means, by git's words (GitPython has them in English).

    Raises:
        OSError: it says nothing about the source.
    """
    if isinstance(error, git.GitCommandNotFound):
        raise OSError(f"git is not installed, {source.location} needs it") from error
    said = str(error.stderr)
    if DISK.search(said):
        raise OSError(f"git: {_last_line(error)}") from error
    if ABSENT.search(said):
        return _reject("no_such_commit", f"{source.pin}: {_last_line(error)}")
    if TRANSPORT.search(said):
        return _reject("unreachable", f"{source.location}: {_last_line(error)}")
    raise OSError(f"git: {_last_line(error)}") from error


def _last_line(error: git.GitError) -> str:
    """Return what git said last, without GitPython's frame around it."""
    said = str(error.stderr if isinstance(error, git.GitCommandError) else error)
    lines = said.strip().removeprefix("stderr:").strip(" '\n").splitlines()
    return lines[-1].strip() if lines else "git failed and said nothing"


def _reject(reason: str, detail: str) -> Reject:
    return Reject(stage="fetch", reason=reason, detail=detail)
