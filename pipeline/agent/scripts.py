"""Scripts of agents that know the answer: all of it, or all but a part."""

from collections.abc import Generator, Mapping
from random import Random

from pipeline.agent.edits import edits_between
from pipeline.agent.loop import Done
from pipeline.agent.tools import Answer, Call

Script = Generator[Call, Answer, Done]
# New content by path, None for a removed file.
Changes = Mapping[str, bytes | None]


def do_nothing() -> Script:
    """End at once."""
    yield from ()
    return Done(reason="", detail="")


def write(changes: Changes, *, before: Mapping[str, bytes]) -> Script:
    """Make changes to a tree, one call a file."""
    for call in calls_for(changes, before=before):
        _ = yield call
    return Done(reason="", detail="it is written")


def write_most(changes: Changes, *, before: Mapping[str, bytes], draw: Random) -> Script:
    """Leave one of the changes out: a file of several, an edit of one, or all there is."""
    calls = calls_for(changes, before=before)
    left_out = draw.randrange(len(calls))
    for number, call in enumerate(calls):
        edits = call.arguments.get("edits")
        if number != left_out:
            yield call
        elif isinstance(edits, list) and len(edits) > 1 and len(calls) == 1:
            # From the end of the file to its beginning: those before the last one stand alone.
            yield Call(thought=call.thought, tool=call.tool, arguments={"edits": edits[:-1]})
    return Done(reason="", detail="most of it is written")


def calls_for(changes: Changes, *, before: Mapping[str, bytes]) -> list[Call]:
    """Return a call for each file that changes, in order of paths."""
    return [_call(path, before.get(path), content) for path, content in sorted(changes.items())]


def _call(path: str, old: bytes | None, new: bytes | None) -> Call:
    if new is None:
        return Call(thought="It goes.", tool="delete_files", arguments={"paths": [path]})
    if old is None:
        arguments: dict[str, object] = {"path": path, "content": new.decode()}
        return Call(thought="It is new.", tool="write_file", arguments=arguments)
    edits = [
        {"path": path, "old": before, "new": after}
        for before, after in edits_between(old.decode(), new.decode())
    ]
    return Call(thought="It belongs here.", tool="edit_files", arguments={"edits": edits})
