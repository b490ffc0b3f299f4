"""A patch that brings names back and nothing that they do."""

import ast
from dataclasses import replace

import pytest

from pipeline.task.patch import apply_patch, make_patch
from pipeline.task.record import Symbol, Task
from pipeline.task.schema import from_row, to_row
from pipeline.task.stub import RAISES, RETURNS_NOTHING, stub_patch
from pipeline.task.tree import apply_changes
from tests.trainer.test_tasks import blank

MODULE = '''\
import functools

def one(a): return a

class Box:
    """A box.

    >>> Box()
    """

    size = 1

    def __init__(self):
        """Make it."""
        self.a = [
            1,
        ]

    @property
    def room(self):
        @functools.cache
        def inner():
            return 1
        return inner()

    def documented(self):
        """Say nothing."""

    async def last(self):
        return 2

KEPT = 1
'''
STUBBED = '''\
import functools

def one(a): raise NotImplementedError

class Box:
    """A box.

    >>> Box()
    """

    size = 1

    def __init__(self):
        """Make it."""
        raise NotImplementedError

    @property
    def room(self):
        raise NotImplementedError

    def documented(self):
        """Say nothing."""

    async def last(self):
        raise NotImplementedError

KEPT = 1
'''
TESTS = {"tests/test_box.py": b"from box import Box, one\n"}


def task_without(*names: str, whole: str = MODULE) -> tuple[Task, dict[str, bytes]]:
    """Return a Task whose gold patch brings back a module, and its Snapshot."""
    snapshot = {"box.py": whole.encode(), **TESTS}
    ablated = {**snapshot, "box.py": b"import functools\n"}
    symbols = tuple(
        Symbol(path="box.py", qualname=name, kind="function", first_line=1, last_line=1)
        for name in names
    )
    task = from_row(Task, to_row(blank(Task)))
    return replace(
        task,
        feature=replace(task.feature, symbols=symbols),
        deletion=replace(
            task.deletion,
            patch=make_patch(snapshot, ablated),
            gold_patch=make_patch(ablated, snapshot),
        ),
    ), snapshot


def stubbed(*names: str, whole: str = MODULE, body: str = RAISES) -> str:
    task, snapshot = task_without(*names, whole=whole)
    shown = {"box.py": b"import functools\n", **TESTS}
    left = apply_changes(shown, apply_patch(shown, stub_patch(task, snapshot, body=body)))
    assert {path: content for path, content in left.items() if path != "box.py"} == TESTS
    return left["box.py"].decode()


def test_bodies_go_and_all_else_stays():
    assert stubbed("one", "Box") == STUBBED


def test_a_stub_may_do_nothing_instead_of_raising():
    text = stubbed("one", "Box", body=RETURNS_NOTHING)
    assert text == STUBBED.replace("raise NotImplementedError", "return None")


def test_a_method_is_stubbed_alone():
    text = stubbed("Box.last")
    assert text == MODULE.replace("        return 2\n", "        raise NotImplementedError\n")


@pytest.mark.parametrize(
    "code",
    [
        "def one():\n\treturn 1\n",
        "def one():\r\n    x = 1\r\n    return x\r\n",
        "def one():\n    @cached\n    def two(): pass\n    return two",
        "@over\ndef one(a): ...\n@over\ndef one(b): ...\ndef one(c): return '''\n'''\n",
        "def one(): 'doc'; return 1",
        "def one(a=1,\n        b=2): return (\n    a)\n",
    ],
)
def test_however_it_is_written_a_stub_parses_and_does_nothing(code: str):
    tree = ast.parse(stubbed("one", whole=code))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert functions
    assert {node.name for node in functions} == {"one"}
    assert all(isinstance(node.body[-1], ast.Raise) for node in functions)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
