"""Tell on which line each key of a TOML text stands, which `tomllib` does not."""

import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

KeyPath = tuple[str | int, ...]

TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r]+ | \#[^\n]*)
    | (?P<string>\"\"\"(?:[^\\]|\\.)*?\"{3,5}(?!\") | '''.*?'{3,5}(?!')
                | "(?:[^"\\\n]|\\.)*" | '[^'\n]*')
    | (?P<newline>\n)
    | (?P<mark>[\[\]{}=,.])
    | (?P<bare>[^\s\[\]{}=,.\#"']+)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of TOML: a string, a mark, a newline or a bare word."""

    kind: str
    text: str
    # From 1.
    line: int


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map the path of each key and table of a valid TOML text to its line, from 1.

    Example: the second `[[repo]]`'s `name` is at `("repo", 1, "name")`.
    """
    scan = _Scan(_tokens(text))
    while not scan.at_end():
        scan.statement()
    return scan.lines


def _tokens(text: str) -> list[Token]:
    tokens, line = [], 1
    for match in TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind != "space":
            tokens.append(Token(kind, match.group(), line))
        line += match.group().count("\n")
    return tokens


@dataclass(slots=True)
class _Scan:
    """A position in the tokens, and what was found before it."""

    tokens: list[Token]
    position: int = 0
    # Path of the table that keys belong to.
    table: KeyPath = ()
    lines: dict[KeyPath, int] = field(default_factory=dict)
    # Number of tables in each array of tables.
    counts: dict[KeyPath, int] = field(default_factory=dict)

    def at_end(self) -> bool:
        return self.position >= len(self.tokens)

    def statement(self) -> None:
        """Take a header, a pair or an empty line."""
        if self.sees("\n"):
            self.take()
        elif self.sees("["):
            self.header()
        else:
            self.pair(self.table)

    def sees(self, text: str) -> bool:
        return not self.at_end() and self.tokens[self.position].text == text

    def take(self) -> Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def header(self) -> None:
        """Take `[a.b]` or `[[a.b]]`."""
        line = self.take().line
        is_array = self.sees("[")
        if is_array:
            self.take()
        names = self.key("]")
        self.take()
        if is_array:
            self.take()
        parent: KeyPath = ()
        for name in names[:-1]:
            parent = self.inside(parent, name)
        self.table = (*parent, names[-1])
        if is_array:
            self.counts[self.table] = self.counts.get(self.table, 0) + 1
            self.table = self.inside(parent, names[-1])
        self.lines.setdefault(self.table, line)

    def inside(self, path: KeyPath, name: str) -> KeyPath:
        """Return the path of a named table, of the last one if it is an array of tables."""
        inner = (*path, name)
        return (*inner, self.counts[inner] - 1) if inner in self.counts else inner

    def key(self, end: str) -> list[str]:
        """Take a dotted key up to its end mark, and let tomllib take its quotes off."""
        text = ""
        while not self.sees(end):
            text += self.take().text
        names, data = [], tomllib.loads(f"{text} = 0")
        value: Any = data
        while isinstance(value, dict):
            name, value = next(iter(value.items()))
            names.append(name)
        return names

    def pair(self, table: KeyPath) -> None:
        line = self.tokens[self.position].line
        path = table
        for name in self.key("="):
            path = (*path, name)
            self.lines.setdefault(path, line)
        self.take()
        self.value(path)

    def value(self, path: KeyPath) -> None:
        """Take a value: an inline table, an array, or what ends at a comma, bracket or newline."""
        if self.sees("{"):
            self.items(path, "}")
        elif self.sees("["):
            self.items(path, "]")
        else:
            while not self.at_end() and self.tokens[self.position].text not in {
                ",",
                "]",
                "}",
                "\n",
            }:
                self.take()

    def items(self, path: KeyPath, end: str) -> None:
        self.take()
        number = 0
        while not self.sees(end):
            if self.sees("\n") or self.sees(","):
                self.take()
            elif end == "}":
                self.pair(path)
            else:
                self.lines.setdefault((*path, number), self.tokens[self.position].line)
                self.value((*path, number))
                number += 1
        self.take()
