"""Folding an option in one module: what goes, what stays byte for byte, what is refused."""

import ast

import pytest

from pipeline.language.python.option.code import read_code
from pipeline.language.python.option.fold import Folded, fold
from pipeline.language.python.option.survey import FileOption
from pipeline.language.python.symbols import Span
from pipeline.language.python.text import is_valid


def option_of(source: str, *, default: str, attribute: str = "") -> FileOption:
    """Return the option `strict` of all functions of a module that take it."""
    code = read_code({"a.py": source})
    owners = frozenset(it.key[1] for it in code.taken.get("strict", ()))
    return FileOption(
        name="strict",
        default=default,
        owners=owners,
        attribute=attribute,
        classes=frozenset({"Box"}) if attribute else frozenset(),
        callees={"f": 1, "Box": None},
        busy=frozenset(qualname for _, qualname in code.words),
    )


def folded(source: str, *, default: str = "False", attribute: str = "") -> Folded:
    result = fold(source, option_of(source, default=default, attribute=attribute))
    assert isinstance(result, Folded), result
    assert is_valid(result.text, path="a.py"), result.text
    return result


def body(text: str, *, default: str = "False") -> str:
    """Return the body of a function `f(x, strict)` after folding, without its indentation."""
    lines = "".join(f"    {line}\n" for line in text.split("\n"))
    after = folded(f"def f(x, strict={default}):\n{lines}", default=default).text
    assert after.startswith("def f(x):\n")
    return after.removeprefix("def f(x):\n").replace("\n    ", "\n")[4:].rstrip("\n")


BODIES = {
    "a branch": ("if strict:\n    a(x)\nb(x)", "b(x)"),
    "a branch on one line": ("if strict: a(x)\nb(x)", "b(x)"),
    "the other branch": ("if strict:\n    a(x)\nelse:\n    b(x)\nc(x)", "b(x)\nc(x)"),
    "the branch of its absence": ("if not strict:\n    a(x)\nb(x)", "a(x)\nb(x)"),
    "an elif": ("if x:\n    a(x)\nelif strict:\n    b(x)", "if x:\n    a(x)"),
    "an elif before an else": (
        "if x:\n    a(x)\nelif strict:\n    b(x)\nelse:\n    c(x)",
        "if x:\n    a(x)\nelse:\n    c(x)",
    ),
    "an elif that is always taken": (
        "if x:\n    a(x)\nelif not strict:\n    b(x)\nelse:\n    c(x)",
        "if x:\n    a(x)\nelse:\n    b(x)",
    ),
    "two elifs": (
        "if x:\n    a(x)\nelif strict:\n    b(x)\nelif strict and x:\n    c(x)\nelse:\n    d(x)",
        "if x:\n    a(x)\nelse:\n    d(x)",
    ),
    "an if before an elif": (
        "if strict:\n    a(x)\nelif x:\n    b(x)\nelse:\n    c(x)",
        "if x:\n    b(x)\nelse:\n    c(x)",
    ),
    "a conjunction": ("if x and strict:\n    a(x)\nb(x)", "b(x)"),
    "a conjunction with its absence": (
        "if x and not strict:\n    a(x)\nb(x)",
        "if x:\n    a(x)\nb(x)",
    ),
    "a disjunction": ("if strict or x:\n    a(x)", "if x:\n    a(x)"),
    "a disjunction in brackets": (
        "if (\n    strict\n    or x\n):\n    a(x)",
        "if (\n    x\n):\n    a(x)",
    ),
    "a value that falls back": ("return strict or x", "return x"),
    "a negated conjunction": ("return not (strict or x)", "return not x"),
    "a conditional expression": ("return a(x) if strict else b(x)", "return b(x)"),
    "a conditional expression in a sum": (
        "return 1 + (a(x) if strict else b(x) - 1)",
        "return 1 + (b(x) - 1)",
    ),
    "a filter": (
        "return [y for y in x if not strict if y]",
        "return [y for y in x if y]",
    ),
    "an argument": ("return g(x, strict)", "return g(x, False)"),
    "a keyword of somebody else": ("return g(x, strict=strict)", "return g(x, strict=False)"),
    "a keyword of its own function": ("return f(x, strict=strict)", "return f(x)"),
    "its place in its own function": ("return f(x, strict)", "return f(x)"),
    "a loop that is never entered": ("while strict:\n    a(x)\nb(x)", "b(x)"),
    "an assertion that holds": ("assert not strict\nb(x)", "b(x)"),
    "a nested function": (
        "def inner(y):\n    if strict:\n        a(y)\n    return y\nreturn inner",
        "def inner(y):\n    return y\nreturn inner",
    ),
    "a lambda": ("return lambda y: y if strict else x", "return lambda y: x"),
    "what stands below a return": ("if not strict:\n    return x\na(x)\nreturn 1", "return x"),
    "what stands below a return in each branch": (
        "if not strict:\n    if x:\n        return 1\n    else:\n        return 2\na(x)",
        "if x:\n    return 1\nelse:\n    return 2",
    ),
    "the only statement": ("if strict:\n    a(x)", "pass"),
    "the only statement of a choice": ("if x:\n    if strict:\n        a(x)\nb(x)", "b(x)"),
    "the only statement of a call's choice": (
        "if g(x):\n    if strict:\n        a(x)\nb(x)",
        "if g(x):\n    pass\nb(x)",
    ),
    "text of several lines keeps its margin": (
        'if not strict:\n    a("""\nleft\n  in\n""")\nb(x)',
        'a("""\nleft\n  in\n""")\nb(x)',
    ),
    "comments about the branch go with it": (
        "a(x)  # a\n\n# about strict\nif strict:\n    # inside\n    b(x)\n# about c\nc(x)  # c",
        "a(x)  # a\n# about c\nc(x)  # c",
    ),
    "comments of the branch that stays": (
        "if not strict:\n    # about a\n    a(x)  # a\n",
        "# about a\na(x)  # a",
    ),
    "odd formatting elsewhere": (
        "y = [ 1,2 ,\n  x ]\nif strict: y=0\nreturn  y",
        "y = [ 1,2 ,\n  x ]\nreturn  y",
    ),
}


@pytest.mark.parametrize(("before", "after"), BODIES.values(), ids=BODIES)
def test_folding_leaves_what_the_default_reaches(before: str, after: str) -> None:
    lines = after.split("\n")
    assert body(before).split("\n") == lines


DEFAULTS = {
    "a test for none": ("None", "if strict is None:\n    a(x)\nelse:\n    b(x)", "a(x)"),
    "a test for something": ("None", "if strict is not None:\n    a(strict.b)\nb(x)", "b(x)"),
    "a guard in front of a call": ("None", "if strict and strict(x):\n    a(x)\nb(x)", "b(x)"),
    "a sentinel": ("_NONE", "if strict is not _NONE:\n    a(strict)\nb(x)", "b(x)"),
    "a sentinel that is handed on": ("_NONE", "return g(strict)", "return g(_NONE)"),
    "a type": ("None", "if isinstance(strict, (str, bytes)):\n    a(x)\nb(x)", "b(x)"),
    "an equality": ("'a'", "if strict == 'b':\n    a(x)\nelif strict == 'a':\n    b(x)", "b(x)"),
    "a member": ("'a'", "if strict in ('b', 'c'):\n    a(x)\nb(x)", "b(x)"),
    "a method of text": ("'-'", "return strict.join(x)", "return '-'.join(x)"),
    "a number": ("10", "if strict > 5:\n    a(x)\nb(x)", "a(x)\nb(x)"),
    "a negative number": ("-1", "return x ** strict", "return x ** (-1)"),
    "a function": ("len", "return strict(x)", "return len(x)"),
    "true": ("True", "if strict:\n    a(x)\nreturn x", "a(x)\nreturn x"),
    "an empty tuple": (
        "()",
        "for y in strict:\n    a(y)\nreturn x",
        "for y in ():\n    a(y)\nreturn x",
    ),
}


@pytest.mark.parametrize(("default", "before", "after"), DEFAULTS.values(), ids=DEFAULTS)
def test_folding_knows_what_a_default_is_worth(default: str, before: str, after: str) -> None:
    assert body(before, default=default) == after


SIGNATURES = {
    "the only one": ("def f(strict=False): ...\n", "def f(): ...\n"),
    "the first": ("def f(strict=False, y=1): ...\n", "def f(y=1): ...\n"),
    "the last": ("def f(x, strict = False): ...\n", "def f(x): ...\n"),
    "with an annotation": (
        "def f(x, strict: bool = False) -> int: ...\n",
        "def f(x) -> int: ...\n",
    ),
    "the only keyword": ("def f(x, *, strict=False): ...\n", "def f(x): ...\n"),
    "the only keyword before others": (
        "def f(x, *, strict=False, **kw): ...\n",
        "def f(x, **kw): ...\n",
    ),
    "a keyword among others": (
        "def f(x, *, strict=False, y=1): ...\n",
        "def f(x, *, y=1): ...\n",
    ),
    "a keyword behind the rest": (
        "def f(*args, strict=False): ...\n",
        "def f(*args): ...\n",
    ),
    "on a line of its own": (
        "def f(\n    x,\n    strict=False,  # why\n    y=1,\n): ...\n",
        "def f(\n    x,\n    y=1,\n): ...\n",
    ),
    "on the last line": (
        "def f(\n    x,  # this\n    strict=False,  # why\n): ...\n",
        "def f(\n    x,  # this\n): ...\n",
    ),
    "on the last line without a comma": (
        "def f(\n    x,\n    strict=False\n): ...\n",
        "def f(\n    x\n): ...\n",
    ),
    "behind what is given by place alone": (
        "def f(x, /, strict=False): ...\n",
        "def f(x, /): ...\n",
    ),
    "in overloads that have it": (
        "@overload\ndef f(x: int): ...\n@overload\ndef f(x: str, strict=False): ...\n",
        "@overload\ndef f(x: int): ...\n@overload\ndef f(x: str): ...\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), SIGNATURES.values(), ids=SIGNATURES)
def test_a_signature_keeps_its_layout(before: str, after: str) -> None:
    assert folded(before).text == after


CLASS = '''\
class Box:
    """A box.

    :param size: of it.
    :param strict: Refuse
        more.
    """

    def __init__(self, size, strict=False):
        self.size = size
        self.strict = strict

    def add(self, thing):
        if self.strict and not thing:
            raise ValueError
        return thing


class Other:
    def get(self):
        return self.strict
'''


def test_an_attribute_that_keeps_the_option_goes_with_all_that_reads_it() -> None:
    result = folded(CLASS, attribute="strict")
    assert (
        result.text
        == '''\
class Box:
    """A box.

    :param size: of it.
    """

    def __init__(self, size):
        self.size = size

    def add(self, thing):
        return thing


class Other:
    def get(self):
        return self.strict
'''
    )
    assert result.docs == (":param strict: Refuse\n    more.",)


def test_an_attribute_with_other_uses_keeps_the_default() -> None:
    assert "        self.strict = False\n" in folded(CLASS).text
    assert "if self.strict and not thing" in folded(CLASS).text


def test_branches_are_the_lines_that_only_another_value_reaches() -> None:
    source = "def f(x, strict=False):\n    if strict:\n        a(x)\n        b(x)\n    return x\n"
    assert folded(source).branches == (Span(first_line=3, last_line=4),)


def test_a_condition_on_one_line_with_its_branch_is_no_line_of_its_own() -> None:
    assert folded("def f(x, strict=False):\n    if strict: a(x)\n    return x\n").branches == ()


REFUSED = {
    "an attribute of none": ("None", "return strict.size"),
    "an item of none": ("None", "return strict[x]"),
    "a call of none": ("None", "return strict(x)"),
    "a loop over none": ("None", "for y in strict:\n        a(y)"),
    "a sum with none": ("None", "return x + strict"),
    "an order of none": ("None", "return x < strict"),
    "a star of none": ("None", "return g(*strict)"),
    "an identity with a number": ("1", "return x is strict"),
    "text in formatted text": ("'a'", "return f'{strict}'"),
    "a default that is made": ("g()", "return strict"),
    "a default that changes": ("[]", "return strict"),
}


@pytest.mark.parametrize(("default", "line"), REFUSED.values(), ids=REFUSED)
def test_what_a_default_cannot_stand_for_is_refused(default: str, line: str) -> None:
    source = f"def f(x, strict={default}):\n    {line}\n"
    assert isinstance(fold(source, option_of(source, default=default)), str)


def test_folding_behaves_as_the_default_does() -> None:
    source = """\
def f(x, strict=False):
    out = []
    for y in x:
        if strict and y < 0:
            raise ValueError(y)
        if y == 3 and not strict:
            continue
        out.append(y if not strict else -y)
        while not strict and len(out) > 4:
            out.pop()
    return out or (None if strict else "none")
"""
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    exec(compile(ast.parse(source), "a.py", "exec"), before)
    exec(compile(ast.parse(folded(source).text), "a.py", "exec"), after)
    for values in ([], [1, 2, 3], [-1, 5], list(range(10))):
        assert before["f"](values) == after["f"](values)  # type: ignore[operator]


def test_a_module_that_is_nested_too_deep_is_refused() -> None:
    deep = "(" * 90 + "1" + ")" * 90
    source = f"def f(x, strict=False):\n    return strict or {' + '.join([deep] * 400)}\n"
    assert fold(source, option_of(source, default="False")) == "the module is nested too deep"


def test_a_module_that_is_no_python_is_refused() -> None:
    option = FileOption(name="strict", default="False")
    assert fold("def (:\n", option) == "the module cannot be parsed"
