"""Parse a shell command into the programs that it runs, each with its words and what feeds it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

LEXEMES = re.compile(
    r"""
    (?P<blank>[ \t\r]+|\\\n)
    |(?P<comment>(?<![^\s;|&(])\#[^\n]*)
    |(?P<heredoc><<-?[ ]*(?P<mark>'[^']*'|"[^"]*"|\\?[\w.]+))
    |(?P<redirect>\d*(?:&>>?|>>|>\||>&\d*-?|<>|<<<|<&\d*-?|>|<))
    |(?P<operator>\|\||&&|;;|\|&|[;&|\n()])
    |(?P<single>'[^']*')
    |(?P<double>"(?:[^"\\]|\\.)*")
    |(?P<substitution>\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|`(?:[^`\\]|\\.)*`)
    |(?P<escape>\\.)
    |(?P<plain>[^\s'"\\`$;&|<>()\#]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
INNER = re.compile(r"\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|`(?:[^`\\]|\\.)*`")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# Words before the program itself, and how many words each takes besides options.
WRAPPERS = {
    **dict.fromkeys(("sudo", "env", "nohup", "time", "exec", "command", "builtin", "xargs"), 0),
    **dict.fromkeys(("nice", "stdbuf", "setsid", "ionice", "unbuffer", "eval", "doas"), 0),
    **dict.fromkeys(("if", "then", "else", "elif", "do", "while", "until", "!", "{", "}"), 0),
    **dict.fromkeys(("timeout", "chroot", "flock"), 1),
}
# Options of wrappers that take the next word.
WITH_VALUE = frozenset({"-I", "-n", "-P", "-L", "-d", "-u", "-s", "-k", "-C"})
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh"})
MAX_DEPTH = 5
# What feeds a program that reads its standard input with text that stands in the command.
PRINTERS = frozenset({"echo", "printf"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program that a shell runs.

    Example: `Command(program="git", words=("log", "--all"), …)` of `cd x && git log --all`.
    """

    # Without its folder.
    program: str
    # Its arguments, quotes away.
    words: tuple[str, ...]
    # Words of what feeds it by a pipe; of the whole text when it uses a variable.
    context: tuple[str, ...]
    # What it is given on its standard input, where the text says so.
    stdin: str
    # Files that its output goes to.
    writes: tuple[str, ...]
    # `NAME=value` before the program.
    variables: tuple[str, ...]


@dataclass(slots=True)
class _Draft:
    """A command while it is read."""

    words: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    stdin: str = ""
    # How the next word is meant: a redirection, or empty.
    pending: str = ""
    # It reads from the command before.
    is_fed: bool = False


def parse_shell(text: str, *, depth: int = 0) -> Iterator[Command]:
    """Yield the commands of a shell text in order, also those inside others.

    What no shell would take is read as far as it can be.
    """
    drafts, inner = _read(text)
    everything = tuple(word for draft in drafts for word in draft.words)
    fed: tuple[str, ...] = ()
    stdin = ""
    for draft in drafts:
        fed, stdin = (fed, stdin) if draft.is_fed else ((), "")
        uses_variable = any("$" in word for word in draft.words)
        context = everything if uses_variable else fed
        yield from _unwrapped(draft, context=context, stdin=draft.stdin or stdin, depth=depth)
        fed = (*fed, *draft.words)
        stdin = draft.stdin or stdin
        if draft.words and draft.words[0] in PRINTERS:
            stdin = " ".join(draft.words[1:]).replace("\\n", "\n")
    if depth < MAX_DEPTH:
        for script in inner:
            yield from parse_shell(script, depth=depth + 1)


def _read(text: str) -> tuple[list[_Draft], list[str]]:
    """Return the simple commands of a text, and the texts of command substitutions."""
    drafts, inner, marks = [_Draft()], list[str](), list[tuple[_Draft, str]]()
    word: str | None = None
    place = 0
    while found := LEXEMES.match(text, place):
        place = found.end()
        kind, value = found.lastgroup or "", found[0]
        if kind == "mark":
            kind = "heredoc"
        if kind in {"single", "double", "substitution", "escape", "plain"}:
            inner += [it.strip("$`()") for it in INNER.findall(value) if kind != "single"]
            word = (word or "") + _meant(kind, value)
            continue
        _put(drafts[-1], word)
        word = None
        if kind == "heredoc":
            marks.append((drafts[-1], found["mark"].strip("'\"\\")))
        elif kind == "redirect":
            drafts[-1].pending = "" if "&" in value and value[-1:].isdigit() else value
        elif kind == "operator":
            drafts.append(_Draft(is_fed=value in {"|", "|&"}))
            place = _take_documents(text, place, marks) if value == "\n" else place
    _put(drafts[-1], word)
    return [draft for draft in drafts if draft.words], inner


def _meant(kind: str, value: str) -> str:
    if kind == "double":
        return re.sub(r'\\([\\"$`\n])', r"\1", value[1:-1])
    return value[1:-1] if kind == "single" else value[1:] if kind == "escape" else value


def _put(draft: _Draft, word: str | None) -> None:
    """Take a word that has ended for what it is."""
    if word is None:
        return
    pending, draft.pending = draft.pending, ""
    if ">" in pending:
        draft.writes.append(word)
    elif pending.startswith("<<<"):
        draft.stdin = word
    else:
        # A file that a program reads is a word of it, however it is given.
        draft.words.append(word)


def _take_documents(text: str, place: int, marks: list[tuple[_Draft, str]]) -> int:
    """Give the here-documents that begin at a place to their commands; return where they end."""
    for draft, mark in marks:
        end = re.compile(rf"^[\t ]*{re.escape(mark)}[ \t]*$", re.MULTILINE).search(text, place)
        draft.stdin = text[place : end.start() if end else len(text)]
        place = end.end() if end else len(text)
    marks.clear()
    return place


def _unwrapped(
    draft: _Draft, *, context: tuple[str, ...], stdin: str, depth: int
) -> Iterator[Command]:
    """Yield what a simple command runs in the end, and what that runs by its options."""
    words, variables = _without_wrappers(draft.words)
    if not words:
        return
    program, rest = words[0].rpartition("/")[2], tuple(words[1:])
    yield Command(
        program=program,
        words=rest,
        context=context,
        stdin=stdin,
        writes=tuple(draft.writes),
        variables=tuple(variables),
    )
    if depth < MAX_DEPTH:
        for script in _scripts(program, rest, stdin):
            yield from parse_shell(script, depth=depth + 1)


def _without_wrappers(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words from the program on, and the assignments before it."""
    variables = list[str]()
    rest = list(words)
    while rest:
        name = rest[0].rpartition("/")[2]
        if ASSIGNMENT.fullmatch(rest[0]):
            variables.append(rest.pop(0))
        elif name in WRAPPERS:
            del rest[0]
            while rest and rest[0].startswith("-"):
                del rest[: 2 if rest[0] in WITH_VALUE else 1]
            if WRAPPERS[name]:
                del rest[0:1]
        else:
            break
    return rest, variables


def _scripts(program: str, words: tuple[str, ...], stdin: str) -> Iterator[str]:
    """Yield the shell texts that a program is told to run."""
    if program in SHELLS:
        options = [it for it in words if it.startswith("-")]
        has_text = any(it.endswith("c") and not it.startswith("--") for it in options)
        operands = [it for it in words if not it.startswith("-")]
        yield operands[0] if has_text and operands else stdin
    if program == "find":
        for number, word in enumerate(words):
            if word in {"-exec", "-execdir", "-ok"}:
                wanted = wanted_words(words[:number])
                paths = " ".join(it for it in wanted if not it.startswith("-"))
                rest = [it for it in words[number + 1 :] if it not in {";", "+", "{}"}]
                yield " ".join(["'" + it.replace("'", "") + "'" for it in rest]) + f" {paths}"


def wanted_words(words: Sequence[str]) -> Iterator[str]:
    """Yield words without the patterns that `find` is told to leave out."""
    for place, word in enumerate(words):
        before, after = words[max(0, place - 2) : place], words[place + 1 : place + 2]
        is_pattern = bool(before) and before[-1] in {"-path", "-name", "-wholename", "-ipath"}
        is_left_out = before[0] in {"-not", "!"} if before else False
        if not (is_pattern and (is_left_out or after == ("-prune",))):
            yield word
