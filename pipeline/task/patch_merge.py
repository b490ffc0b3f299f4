"""Merge patches that were made against one tree, each without knowledge of the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.task.patch import apply_patch
from pipeline.task.patch_text import FilePatch, Hunk, parse_patch, split_lines


def merge_patches(
    tree: Mapping[str, bytes], patches: Sequence[str]
) -> dict[str, bytes | None] | None:
    """Return the new content of each file that some patches touch, None for a deleted one.

    None instead of all that when two of them change the same line, insert at the same place, or
    touch a file that one of them adds or deletes. Lines next to each other are no conflict.

    Raises:
        PatchError: one of them does not fit the tree by itself.
    """
    changes: dict[str, bytes | None] = {}
    touching: dict[str, list[FilePatch]] = {}
    for patch in patches:
        changes |= apply_patch(tree, patch)
        for file in parse_patch(patch):
            touching.setdefault(file.path, []).append(file)
    for path, files in touching.items():
        if len(files) > 1:
            merged = _merged(tree.get(path), files)
            if merged is None:
                return None
            changes[path] = merged
    return changes


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Edit:
    """Old lines, by index from `start` to before `end`, and what takes their place."""

    start: int
    end: int
    new: tuple[str, ...]


def _merged(content: bytes | None, files: Sequence[FilePatch]) -> bytes | None:
    if content is None or any(file.kind != "change" for file in files):
        return None
    edits = sorted(edit for file in files for hunk in file.hunks for edit in _edits(hunk))
    old = split_lines(content.decode("utf-8", "surrogateescape"))
    new: list[str] = []
    done = 0
    last = _Edit(start=-1, end=-1, new=())
    for edit in edits:
        if edit.start < done or edit.start == last.start:
            return None
        new += [*old[done : edit.start], *edit.new]
        done, last = edit.end, edit
    return "".join(new + old[done:]).encode("utf-8", "surrogateescape")


def _edits(hunk: Hunk) -> Iterator[_Edit]:
    """Yield the changes of a hunk, without the lines around them."""
    place = start = hunk.old_start - bool(hunk.old)
    new: list[str] = []
    for sign, line in (*hunk.lines, (" ", "")):
        if sign == "+":
            new.append(line)
        elif sign == "-":
            place += 1
        else:
            if place > start or new:
                yield _Edit(start=start, end=place, new=tuple(new))
            place += 1
            start, new = place, []
