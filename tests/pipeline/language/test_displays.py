"""Elements that mention a name go from lists, sets, tuples and dictionaries, and nothing else."""

import pytest

from pipeline.language.python.cut import Cuts, cut

CASES = [
    ("X = [a, gone, b]\n", "X = [a, b]\n"),
    ("X = [\n    a,\n    gone,  # it\n    b,\n]\n", "X = [\n    a,\n    b,\n]\n"),
    ("X = {'a': a, 'gone': gone}\n", "X = {'a': a}\n"),
    ("X = {gone}\n", "X = set()\n"),
    ("X = {gone: 1}\n", "X = {}\n"),
    ("X = (a, gone, b)\n", "X = (a, b)\n"),
    ("X = a, gone\n", "X = a,\n"),
    # A row of a table goes whole, of nested lists the innermost loses an element.
    ("X = [('a', a), ('gone', gone)]\n", "X = [('a', a)]\n"),
    ("X = {'k': [a, gone], 'l': [b]}\n", "X = {'k': [a], 'l': [b]}\n"),
    ("X = [wrap(gone), a]\n", "X = [a]\n"),
    ("X.update({'gone': gone, 'a': a})\n", "X.update({'a': a})\n"),
    ("X: dict[str, int] = {'gone': gone, 'a': a}\n", "X: dict[str, int] = {'a': a}\n"),
    ("class C:\n    x = [gone, a]\n    y = 1\n", "class C:\n    x = [a]\n    y = 1\n"),
    (
        "@mark('f', [a, gone])\ndef test(f): ...\n",
        "@mark('f', [a])\ndef test(f): ...\n",
    ),
    (
        "class T:\n    @mark('f', [\n        a,\n        gone,\n    ])\n    def test(self): ...\n",
        "class T:\n    @mark('f', [\n        a,\n    ])\n    def test(self): ...\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_the_element_goes(before: str, after: str):
    lines = [number for number, line in enumerate(before.split("\n"), 1) if "gone" in line]
    elements = frozenset((line, "gone") for line in lines)
    assert cut(before, Cuts(elements=elements)) == after


def test_a_dotted_name_is_meant_as_written():
    source = "X = [m.gone, gone, m.gone.x]\n"
    assert cut(source, Cuts(elements=frozenset({(1, "m.gone")}))) == "X = [gone, m.gone.x]\n"


def test_only_statements_on_the_lines_lose_elements():
    source = "X = [gone, a]\nY = [gone, a]\n"
    assert cut(source, Cuts(elements=frozenset({(2, "gone")}))) == "X = [gone, a]\nY = [a]\n"


def test_a_registration_goes_as_a_whole():
    source = "import m\n\nm.register(\n    gone,\n)\nx = 1\n"
    assert cut(source, Cuts(statements=frozenset({4}))) == "import m\n\nx = 1\n"
