"""Tell whether a command for the shell can have changed anything."""

import re
import shlex
from collections.abc import Iterator, Sequence

# Programs that but print, whatever they are told.
_PRINTING = re.compile(
    r"basename|cat|cd|cmp|column|cut|date|diff|dirname|du|echo|[ef]?grep|false|file|head|ls|nl"
    r"|printf|pwd|realpath|rg|sleep|stat|tail|test|tr|true|wc|which"
    # One that runs tests is taken to leave the sources as they are.
    r"|pytest|py\.test|python[\d.]* -m (?:pytest|unittest)"
    r"|git (?:blame|diff|grep|log|ls-files|rev-parse|show|status)"
)
# That print as well, unless they are told one of these.
_UNLESS = {
    "find": re.compile(r"-(?:delete|exec|execdir|ok|okdir|fprint\w*|fls)\Z"),
    # In place; and commands of its own that write, or run what they read.
    "sed": re.compile(r"-[a-zA-Z]*i|--in-place|(?:.*[;{}/\d$\s])?[wWe]\b", re.DOTALL),
    "sort": re.compile(r"-[a-zA-Z]*o|--output"),
}
_OUTPUT = re.compile(r"--output(?:=|\Z)")
# Redirections that write no file.
_HARMLESS = re.compile(r"\d?>&\d|&?\d?>{1,2}\s*/dev/null|<\s*/dev/null")
_BETWEEN = frozenset({"|", "||", "&&", ";"})
_SIGNS = frozenset("();<>|&")
_ASSIGNED = re.compile(r"\w+=.*", re.DOTALL)


def only_looks(command: str) -> bool:
    """Tell whether a command surely leaves all files as they are; no for what is not understood.

    Example: `only_looks("grep -rn x src | head")`, and not `only_looks("sed -i s/a/b/ a.py")`.
    """
    if "\n" in command.strip() or "`" in command or "$(" in command:
        return False
    lexer = shlex.shlex(_HARMLESS.sub(" ", command), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        parts = list(_split(list(lexer)))
    except ValueError:
        return False
    return bool(parts) and all(map(_prints, parts))


def _split(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the simple commands; a sign that is not known stays in one."""
    part: list[str] = []
    for word in words:
        if word in _BETWEEN:
            yield part
            part = []
        elif part or not _ASSIGNED.fullmatch(word):
            part.append(word)
    if part:
        yield part


def _prints(words: Sequence[str]) -> bool:
    if not words or any(_SIGNS.issuperset(word) or _OUTPUT.match(word) for word in words):
        return False
    program, *rest = words[0].rpartition("/")[2], *words[1:]
    if program in _UNLESS:
        return not any(map(_UNLESS[program].match, rest))
    # With what a program of many is told to be.
    names = (" ".join((program, *rest[:num])) for num in range(3))
    return any(map(_PRINTING.fullmatch, names))
