"""Let an agent that wants nothing but the deleted code look for it, and judge what it saw."""

import json
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.agent.attempt import NO_LITTER, Litter, solver_bench
from pipeline.agent.loop import Done, ScriptedPolicy, run_agent
from pipeline.agent.tools import Answer, Call
from pipeline.leaks.judge import Recovered, judge
from pipeline.leaks.match import Matcher
from pipeline.leaks.prints import deletion_prints
from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.task.changed import Desk
from pipeline.task.record import Task, Turn
from pipeline.task.solve_tree import solve_tree
from pipeline.task.suite import BYTECODE, ENVIRONMENT, TEMPORARY, TREE
from pipeline.task.tree import read_tree

SCRIPT = Path(__file__).parent / "inside" / "recover.py"
TIMEOUT_S = 300.0
# Where what was made for a Task lies, and what anybody may leave behind: not the system.
NEAR = (
    TREE,
    ENVIRONMENT,
    BYTECODE,
    TEMPORARY,
    "/etc",
    "/home",
    "/opt",
    "/root",
    "/run",
    "/srv",
    "/var",
)
# What the agent writes down, in its tree.
NOTES = "recovered.notes"
MAX_NOTES_CHARS = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Loot:
    """A piece that gave something of the deleted code away.

    Example: `Loot(place="/env/lib/a.whl > zip pkg/a.py", recovered=(Recovered(…),))`.
    """

    # Where it lay, and how it was opened.
    place: str
    recovered: tuple[Recovered, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What came of looking for the deleted code: no loot from a clean Task."""

    # Pieces with a body or a signature that the solve tree's own texts do not show.
    loot: tuple[Loot, ...]
    # Pieces that mention a deleted name.
    num_pieces: int
    # Everything was looked through; else the time, or the room for notes, was used up.
    is_whole: bool
    turns: tuple[Turn, ...]


def recover(
    task: Task, *, desk: Desk, places: tuple[str, ...] = NEAR, litter: Litter = NO_LITTER
) -> Recovery:
    """Look for a Task's deleted code wherever a solver can read, opening what can be opened.

    Args:
        task: whose code.
        desk: of its Repo.
        places: absolute paths of what is looked through.
        litter: what lies about besides.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: nothing was learnt.
    """
    policy = ScriptedPolicy(_loot(names_of(task), places))
    with solver_bench(task, desk=desk, litter=litter) as workbench:
        done, turns = run_agent(policy, workbench, max_turns=3, max_shown_chars=MAX_NOTES_CHARS)
    if done.reason:
        raise SandboxBrokenError(f"the recovery agent did not end: {done.detail}")
    notes = turns[-1].output
    *pieces, (end, _) = _pieces(notes)
    return Recovery(
        loot=tuple(_judge(task, pieces, desk=desk)),
        num_pieces=len(pieces),
        is_whole=end == "end",
        turns=turns,
    )


def names_of(task: Task) -> tuple[tuple[str, ...], ...]:
    """Return what to look for, as an instruction tells it: of a method the class as well."""
    feature = task.feature
    names = {tuple(it.qualname.split(".")) for it in feature.symbols}
    names |= {(it.partition(":")[2],) for it in feature.constants}
    if feature.option:
        names = {(*words, feature.option.lstrip("-")) for words in names}
    return tuple(sorted(names))


def _loot(
    names: tuple[tuple[str, ...], ...], places: tuple[str, ...]
) -> Generator[Call, Answer, Done]:
    code = SCRIPT.read_text(encoding="utf-8")
    asked = json.dumps({"names": names, "places": places})
    file = f"{TEMPORARY}/recover.py"
    command = f"cat >{file} <<'END'\n{code}END\npython -I -S {file} >{NOTES} <<'END'\n{asked}\nEND"
    answer = yield Call(
        thought="Where is a copy of what was deleted?",
        tool="run_command",
        arguments={"command": command, "timeout_s": TIMEOUT_S},
    )
    if not answer.ok:
        return Done(reason="out_of_turns", detail=answer.output[-300:])
    yield Call(thought="What is in it?", tool="read_file", arguments={"path": NOTES})
    return Done(reason="", detail="")


def _pieces(notes: str) -> list[tuple[str, str]]:
    """Return the pieces of what the script printed: how each was opened, what it shows."""
    parts = (piece.partition("\n") for piece in notes.split("\x1e")[1:])
    return [(place, text) for place, _, text in parts]


def _judge(task: Task, pieces: Iterable[tuple[str, str]], *, desk: Desk) -> Iterator[Loot]:
    """Yield the pieces that show a body or a signature which nothing legitimate shows."""
    snapshot = read_tree(desk.tree)
    prints = deletion_prints(snapshot, task.deletion)
    matcher = Matcher(prints)
    shown = _shown(task, snapshot, matcher)
    for place, text in pieces:
        found = _keys_in(text, place, matcher) - shown
        recovered = tuple(
            it for it in judge(found, prints) if not {"body", "signature"}.isdisjoint(it.parts)
        )
        if recovered:
            yield Loot(place=place, recovered=recovered)


def _shown(task: Task, snapshot: dict[str, bytes], matcher: Matcher) -> frozenset[int]:
    """Return the keys that the solve tree's files and the instructions hold."""
    texts = [*solve_tree(task, snapshot).values(), *(it.text.encode() for it in task.instructions)]
    return frozenset().union(*(matcher.match(text, "text") for text in texts))


def _keys_in(text: str, place: str, matcher: Matcher) -> frozenset[int]:
    is_code = place.endswith("code objects")
    return matcher.match(text.encode("utf-8", "replace"), "code" if is_code else "text")
