"""Tell whether two pieces of Python do the same, whatever they say of themselves."""

import io
import tokenize

_LAYOUT = frozenset({
    *(tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
})


def does_the_same(one: str, other: str) -> bool:
    """Tell whether two pieces differ in comments, docstrings and layout alone; no where unsure.

    Example: `does_the_same("x = 1  # old", "x = 1")`.
    """
    lines, others = one.rstrip().split("\n"), other.rstrip().split("\n")
    # What both begin with may open what neither closes.
    while lines and others and lines[0] == others[0]:
        lines, others = lines[1:], others[1:]
    try:
        return _statements("\n".join(lines)) == _statements("\n".join(others))
    except (tokenize.TokenError, SyntaxError):
        return False


def _statements(text: str) -> list[tuple[int, list[str]]]:
    """Return the tokens of each statement that is more than a text, with where it begins."""
    lines: list[list[tokenize.TokenInfo]] = [[]]
    for token in tokenize.generate_tokens(io.StringIO(f"{text}\n").readline):
        if token.type == tokenize.NEWLINE:
            lines.append([])
        elif token.type not in _LAYOUT:
            lines[-1].append(token)
    return [
        (line[0].start[1], [token.string for token in line])
        for line in lines
        if any(token.type != tokenize.STRING for token in line)
    ]
