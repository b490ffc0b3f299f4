"""Marks tell the lines that `sys.settrace` sees, and change nothing else: the plain twin."""

import ast
import asyncio
import builtins
import contextlib
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeline.task

INSIDE = Path(pipeline.task.__file__).with_name("inside")
Marker: Any = runpy.run_path(str(INSIDE / "trace_marks.py"))["Marker"]
NAME = "<twin>"


class FirstError(Exception): ...


class SecondError(Exception): ...


class World:
    """What generated code may call; it decides by numbers that are dealt beforehand."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = list(numbers)
        self.log: list[object] = []

    def pick(self) -> int:
        """Return the next number, 0 when all are dealt: so every loop ends."""
        number = self.numbers.pop(0) if self.numbers else 0
        self.log.append(number)
        return number

    def boom(self) -> None:
        if (number := self.pick() % 3) > 0:
            raise (FirstError, SecondError)[number - 1](number)

    def some(self) -> Iterator[int]:
        for number in range(self.pick() % 3):
            yield number
            self.boom()

    @contextlib.contextmanager
    def swallow(self) -> Iterator[int]:
        self.boom()
        with contextlib.suppress(FirstError):
            yield self.pick()

    def names(self) -> dict[str, object]:
        mine = {name: getattr(self, name) for name in ("pick", "boom", "some", "swallow")}
        return {**mine, "FirstError": FirstError, "SecondError": SecondError, "__name__": "twin"}


def run(code: CodeType, world: World, **extra: object) -> str:
    """Run a module and its `f`, to the end if it has one; return what became of it."""
    space = {**world.names(), "__builtins__": {**vars(builtins), **extra}}
    try:
        exec(code, space)
        result = space["f"]()  # type: ignore[operator]
        if hasattr(result, "__await__"):
            return repr(asyncio.run(result))
        if hasattr(result, "send"):
            values = [next(result, None) for _ in range(3)]
            result.close()
            return repr(values)
    except Exception as error:  # noqa: BLE001  it raises what it likes
        return f"{type(error).__name__}: {error}"
    return repr(result)


def traced(source: str, numbers: list[int]) -> tuple[str, list[object], set[int]]:
    """Run a source under `sys.settrace`; return its result, its log and the lines."""
    lines: set[int] = set()

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != NAME:
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    world, before = World(numbers), sys.gettrace()
    code = compile(source, NAME, "exec", dont_inherit=True)
    sys.settrace(trace)
    try:
        result = run(code, world)
    finally:
        sys.settrace(before)
    return result, world.log, lines


def marked(source: str, numbers: list[int]) -> tuple[str, list[object], set[int]]:
    """Run a source with marks; return its result, its log and the lines."""
    marker, tree, world = Marker(), ast.parse(source), World(numbers)
    marker.mark_module(tree)
    marker.number(0)
    marks = [0] * len(marker.stretches)
    code = compile(tree, NAME, "exec", dont_inherit=True)
    result = run(code, world, __regrow_marks__=marks)
    lines = {
        line
        for mark, (_, _, _, pairs) in zip(marks, marker.stretches, strict=True)
        if mark
        for first, last in zip(pairs[::2], pairs[1::2], strict=True)
        for line in range(first, last + 1)
    }
    return result, world.log, lines & set(lines_of(compile(source, NAME, "exec")))


def lines_of(code: CodeType) -> Iterator[int]:
    """Yield the lines that have bytecode: of no other one does Python say that it runs."""
    yield from (line for _, _, line in code.co_lines() if line)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from lines_of(constant)


def open_lines(source: str) -> set[int]:
    """Return the lines that the twins see differently.

    Those of `except` and `case` count with their bodies. What raises an exception again at the end
    of a `finally` has the line of its last statement: `settrace` reports that though it never ran.
    """
    return {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if line.lstrip().startswith(("except", "case")) or line.endswith("# last")
    }


def assert_twins_agree(source: str, numbers: list[int]) -> set[int]:
    result, log, expected = traced(source, numbers)
    assert marked(source, numbers)[:2] == (result, log)
    lines = marked(source, numbers)[2]
    assert lines - open_lines(source) == expected - open_lines(source)
    assert lines <= expected
    return lines


SOURCES = {
    "docstrings and futures": '''\
"""Some module."""
from __future__ import annotations
def f(x: Nowhere = 1) -> Nowhere:
    """Say so."""
    global total
    total = x
    return f.__doc__, __doc__, f.__annotations__
''',
    "branches": """\
def f():
    if pick():
        x = 1
    elif pick():
        x = 2
    else:
        x = 3
    y = x if pick() else 0
    return x + y
""",
    "one line each": """\
def f():
    if pick(): x = 1; pick()
    else: x = 2
    for i in some(): x += i
    while pick(): x += 1
    try: boom()
    except FirstError: x = 5
    return x
""",
    "loops": """\
def f():
    n = 0
    for i in some():
        if pick() == 1:
            continue
        if pick() == 2:
            break
        n += i
    else:
        n = -n
    while pick():
        n += 1
    else:
        n += 10
    while True:
        n += 1
        if not pick():
            break
    return n
""",
    "try": """\
def f():
    n = 0
    try:
        n += 1
        boom()
        n += 1
    except FirstError:
        n += 10
    except SecondError as error:
        n += 20
        raise ValueError(str(error)) from error
    else:
        n += 100
    finally:
        pick()
        n += 1000
    try:
        int("x")
        n = 0
    except ValueError: n += 1
    try:
        for i in some():
            {}[i]
            n += 1
    except LookupError:
        return n
    finally:
        n += 5
    return n
""",
    "exception groups": """\
def f():
    n = 0
    try:
        n += 1
        try:
            boom()
        except Exception as error:
            raise ExceptionGroup("all", [error]) from None
    except* FirstError:
        n += 10
    except* SecondError:
        n += 20
    return n
""",
    "with": """\
def f():
    n = 0
    with swallow() as x, swallow():
        n += 1
        boom()
        n += x
    n += 100
    with swallow(): boom(); n += 1
    return n
""",
    "match": """\
def f():
    match pick():
        case 0 | 1:
            x = "few"
        case int(n) if pick():
            x = n
        case _:
            x = "many"
    return x
""",
    "generators": """\
def f():
    try:
        yield pick()
        x = yield pick()
        yield from some()
    finally:
        pick()
    y = 1
    yield x
""",
    "asynchronous": """\
class Manager:
    async def __aenter__(self):
        boom()
    async def __aexit__(self, *_):
        return bool(pick())
async def each():
    for i in some():
        yield i
async def f():
    n = 0
    async with Manager():
        n += 1
        async for i in each():
            n += i
        else:
            boom()
    n += sum([i async for i in each()])
    return n
""",
    "definitions": """\
import functools
def decorator(function):
    @functools.wraps(function)
    def wrapper(*args):
        pick()
        return function(*args)
    return wrapper
class Box:
    '''A box.'''
    size = 3
    if pick():
        width = 4
    def __init__(self, size=size):
        self.size = size
    @property
    def area(self):
        boom()
        return self.size ** 2
    @area.setter
    def area(self, value):
        self.size = value
    class Lid:
        @decorator
        def close(self):
            return lambda: pick()
@functools.lru_cache(
    maxsize=None,
)
def cached():
    return Box().area
def f():
    class Local(Box):
        def method(self):
            nonlocal n
            n += 1
            return super().area
    n = 0
    box = Local(size=cached())
    box.area = 4
    return [box.method() for _ in some()], Box.Lid().close()(), n
""",
    "statements": """\
def f():
    import os.path as path
    from sys import version_info
    pass
    a, *b = 1, 2, 3
    a: int
    c: int = (
        a
        +
        pick()
    )
    del a
    assert c, "no"
    b += [c]
    (lambda: pick())()
    "text"
    ...
    return [x for x in b if x], {x: c for x in b}, path.sep, version_info > (3,)
""",
    "nothing but a docstring": "def f(): 'Short.'",
    "dots": "def f(): ...",
}
NUMBERS = ([], [1] * 30, [2] * 30, [0, 1, 2] * 10, [1, 0, 0, 2, 1] * 6, [0, 0, 1, 1, 1, 0] * 5)


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
@pytest.mark.parametrize("name", SOURCES)
def test_marks_agree_with_settrace_on_each_kind_of_statement(name: str, numbers: list[int]):
    assert assert_twins_agree(SOURCES[name], numbers)


SIMPLE = (
    *("pass", "n += 1", "x = pick()", "boom()", "n = 1 if pick() else 2", "n = pick() or pick()"),
    *(
        "return pick()",
        "return",
        "raise FirstError",
        "raise SecondError(pick())",
        "assert pick()",
        "raise",
    ),
    *("import math", "x = [pick() for _ in some()]", "x = lambda: boom()", "global m", "yield n"),
    *("del n; n = 0", "'text'"),
)
HEADERS = (
    *("if pick():", "for i in some():", "while pick():", "with swallow():", "class C:"),
    *("def g():", "try:", "match pick():"),
)


def indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def no_jumps(lines: list[str]) -> list[str]:
    """Return the body of a class or function, in which the loops and returns around end."""
    bare = {"break", "continue", "return", "return pick()", "yield n"}
    return [f"{line[: -len(line.lstrip())]}pass" if line.lstrip() in bare else line
            for line in lines]  # fmt: skip


@st.composite
def blocks(draw: Callable[..., Any], depth: int = 3, *, in_loop: bool = False) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        if depth == 0 or draw(st.booleans()):
            jumps = ("break", "continue") if in_loop else ()
            lines.append(draw(st.sampled_from(SIMPLE + jumps)))
            continue
        header = draw(st.sampled_from(HEADERS))
        inner_loop = in_loop or header.startswith(("for", "while"))
        body = indent(draw(blocks(depth=depth - 1, in_loop=inner_loop)))
        block = indent(draw(blocks(depth=depth - 1, in_loop=in_loop)))
        if header == "match pick():":
            lines += [header, "    case 1:", *indent(body), "    case _ if pick():", *indent(block)]
        elif header in {"class C:", "def g():"}:
            call = ["g()"] if header == "def g():" else []
            lines += [header, "    n = 0", *no_jumps(body), *call]
        elif header == "try:":
            lines += [header, *body, *draw(clauses(block, depth=depth - 1, in_loop=in_loop))]
        else:
            more = not header.startswith("with") and draw(st.booleans())
            lines += [header, *body, *(["else:", *block] if more else [])]
    return lines


@st.composite
def clauses(draw: Callable[..., Any], block: list[str], *, depth: int, in_loop: bool) -> list[str]:
    """Return what follows the body of a `try`."""
    more = indent(draw(blocks(depth=depth, in_loop=in_loop)))
    return draw(
        st.sampled_from([
            ["finally:", *block, "    n = 3  # last"],
            ["except FirstError:", *block],
            ["except FirstError:", *block, "except SecondError as error:", *more],
            ["except FirstError:", *block, "else:", *more],
            ["except Exception:", *block, "finally:", *more, "    n = 4  # last"],
        ])
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(body=blocks(), numbers=st.lists(st.integers(0, 3), max_size=20))
def test_marks_agree_with_settrace_on_any_function(body: list[str], numbers: list[int]):
    source = "\n".join(["m = 0", "def f():", "    n = x = 0", *indent(body)])
    assert_twins_agree(source, numbers)
