"""Follow the texts of files through an Episode, as far as it shows them whole."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainer.feedback.acts import Act, plain_path
from trainer.feedback.course import Course


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    r"""A file's whole text before a call and after it.

    Example: `Change(act=…, path="src/a.py", before="x = 1\n", after="x = 2\n")`.
    """

    act: Act
    path: str
    # None where the Episode does not show it.
    before: str | None
    after: str


def follow(course: Course) -> tuple[list[Change], dict[str, str]]:
    """Return the changes by file tools that are known to the letter, and the texts at the end.

    A shell, or a tool that is not known here, may change any file: all are forgotten then, until
    they are read again.
    """
    changes: list[Change] = []
    texts: dict[str, str] = {}
    for act in course.acts:
        if act.name == "read_file" and act.status == "done" and _is_whole(act):
            texts |= dict.fromkeys(act.paths, act.output)
        elif act.status in {"done", "unanswered"} and act.name in _AFTER:
            after = dict(_AFTER[act.name](act, texts))
            known = {path: text for path, text in after.items() if text is not None}
            for path, text in known.items():
                changes.append(Change(act=act, path=path, before=texts.get(path), after=text))
            texts = {path: text for path, text in texts.items() if path not in after} | known
        elif act.may_change:
            texts.clear()
    return changes, texts


def _is_whole(act: Act) -> bool:
    return act.arguments.keys() == {"path"} and not act.is_cut


def _written(act: Act, _: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    content = act.arguments.get("content")
    yield from ((path, content) for path in act.paths if isinstance(content, str))


def _edited(act: Act, texts: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    edits = act.arguments.get("edits") if act.name == "edit_files" else [act.arguments]
    now: dict[str, str | None] = {}
    for edit in edits if isinstance(edits, list) else ():
        match edit:
            case {"path": str(given), "old": str(old), "new": str(new)}:
                path = plain_path(given)
                text = now.get(path, texts.get(path))
                now[path] = text.replace(old, new) if text and text.count(old) == 1 else None
    yield from now.items()


def _deleted(act: Act, _: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    yield from ((path, None) for path in act.paths)


_AFTER = {
    "write_file": _written,
    "edit_file": _edited,
    "edit_files": _edited,
    "delete_files": _deleted,
}
