"""Turn a new text of a file into the small unique replacements that an edit tool takes."""

import difflib


def edits_between(old: str, new: str) -> tuple[tuple[str, str], ...]:
    """Return (old, new) snippets which, applied in order, each replace exactly one place."""
    before, after = _lines(old), _lines(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    edits: list[tuple[str, str]] = []
    text = old
    # From the end, so that the lines before an edit are still those of `old`.
    for tag, first, last, to_first, to_last in reversed(matcher.get_opcodes()):
        if tag == "equal":
            continue
        replacement = "".join(after[to_first:to_last])
        edit = _unique(text, before, first=first, last=last, replacement=replacement)
        edits.append(edit)
        text = text.replace(*edit)
    return tuple(edits)


def _lines(text: str) -> list[str]:
    """Split at newlines alone: form feeds and their kind stay inside a line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _unique(
    text: str, before: list[str], *, first: int, last: int, replacement: str
) -> tuple[str, str]:
    """Widen the snippet upwards, line by line, until it stands once in the text."""
    for start in range(first, -1, -1):
        old = "".join(before[start:last])
        # Found once from both ends: a snippet may overlap itself, as lines that repeat do.
        if old and text.find(old) == text.rfind(old):
            return old, "".join(before[start:first]) + replacement
    rest = text[len("".join(before[:last])) :]
    return text, "".join(before[:first]) + replacement + rest
