"""Cutting: what goes, and that all other bytes stay."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.language.python.cut import Cuts, cut
from pipeline.language.python.text import is_valid

GONE = Cuts(
    symbols=frozenset({"gone", "Box.gone"}),
    constants=frozenset({"_GONE"}),
    exports=frozenset({"gone"}),
    is_gone_import=lambda binding: binding.target == "gone",
)


def trimmed(source: str) -> str:
    """Cut what is called gone."""
    text = cut(source, GONE)
    assert is_valid(text, path="a.py")
    return text


CASES = {
    "a function with decorators and attached comments": (
        "a = 1\n\n\n# about gone\n@wrap\n@wrap(1)\ndef gone():\n    pass\n\n\nb = 2\n",
        "a = 1\n\n\nb = 2\n",
    ),
    "a comment with a blank line below stays": (
        "# section\n\n# about\ndef gone(): ...\n\ndef b(): ...\n",
        "# section\n\ndef b(): ...\n",
    ),
    "a comment that opens the file stays": (
        "# licence\ndef gone(): ...\n\nb = 1\n",
        "# licence\nb = 1\n",
    ),
    "comments that trail inside the body go": (
        "def gone():\n    pass\n    # one\n\n    # two\n\n# next\nb = 1\n",
        "# next\nb = 1\n",
    ),
    "comments of the function above stay": (
        "def a():\n    pass\n    # a's\ndef gone(): ...\n",
        "def a():\n    pass\n    # a's\n",
    ),
    "the first function": ("def gone(): ...\n\n\ndef b(): ...\n", "def b(): ...\n"),
    "the last function": ("a = 1\n\n\ndef gone(): ...\n", "a = 1\n"),
    "no final newline": ("a = 1\n\n\ndef gone(): ...\n\n\nb = 2", "a = 1\n\n\nb = 2"),
    "two neighbours": (
        "a = 1\n\n\n@overload\ndef gone(x: int): ...\n\n\ndef gone(x): ...\n\n\nb = 2\n",
        "a = 1\n\n\nb = 2\n",
    ),
    "carriage returns": (
        "from m import (\r\n    a,\r\n    gone,\r\n)\r\n\r\ndef gone():\r\n    x\r\n\r\nb = 1\r\n",
        "from m import (\r\n    a,\r\n)\r\n\r\nb = 1\r\n",
    ),
    "tabs": (
        "class Box:\n\tdef a(self): ...\n\n\tdef gone(self):\n\t\tpass\n\nb = 1\n",
        "class Box:\n\tdef a(self): ...\n\nb = 1\n",
    ),
    "a section with its title": (
        "x = 1\n\n\n# -- gone --\n\ndef gone(): ...\n\n\n# -- more --\n\ndef b(): ...\n",
        "x = 1\n\n\n# -- more --\n\ndef b(): ...\n",
    ),
    "the last section": ("x = 1\n\n# a\n# b\n\ndef gone(): ...\n", "x = 1\n"),
    "the last section of a class": (
        "class Box:\n    x = 1\n\n    # a\n\n    def gone(self): ...\n\n\ny = 1\n",
        "class Box:\n    x = 1\n\n\ny = 1\n",
    ),
    "a title with more below stays": (
        "x = 1\n\n# a\n\ndef gone(): ...\n\ndef b(): ...\n",
        "x = 1\n\n# a\n\ndef b(): ...\n",
    ),
    "a title with something documented below stays": (
        "x = 1\n\n# a\n\ndef gone(): ...\n\n# b's\ndef b(): ...\n",
        "x = 1\n\n# a\n\n# b's\ndef b(): ...\n",
    ),
    "a comment that opens the file is no title": (
        "# licence\n\ndef gone(): ...\n",
        "# licence\n",
    ),
    "a comment below a statement is no title": (
        "x = 1\n# x's\n\ndef gone(): ...\n",
        "x = 1\n# x's\n",
    ),
    "a byte order mark": ("\ufeffdef gone(): ...\nb = 'ä'\n", "\ufeffb = 'ä'\n"),
    "form feeds": ("a = 1\n\x0c\ndef gone(): ...\n\x0c\nb = 2\n", "a = 1\n\x0c\nb = 2\n"),
    "a property with its setter": (
        "class Box:\n  @property\n  def gone(s): 1\n  @gone.setter\n  def gone(s): 1\n  b = 1\n",
        "class Box:\n  b = 1\n",
    ),
    "the only method leaves pass": (
        "class Box:\n\n    # about\n    def gone(self): ...\n\nb = 1\n",
        "class Box:\n\n    pass\n\nb = 1\n",
    ),
    "a docstring is body enough": (
        "class Box:\n    'D'\n\n    def gone(self): ...\n\n\nb = 1\n",
        "class Box:\n    'D'\n\n\nb = 1\n",
    ),
    "the first of two methods": (
        "class Box:\n    def gone(self): ...\n\n    def b(self): ...\n",
        "class Box:\n    def b(self): ...\n",
    ),
    "a name of an inline import": ("from m import a, gone\n", "from m import a\n"),
    "the first name": ("from m import gone, a  # why\n", "from m import a  # why\n"),
    "an aliased name": ("from m import gone as g, a as b\n", "from m import a as b\n"),
    "a whole import": ("import a\nfrom m import gone\n\n\nb = 1\n", "import a\n\n\nb = 1\n"),
    "a parenthesised line": ("from m import (a, gone, b)\n", "from m import (a, b)\n"),
    "a bracket without trailing comma": (
        "from m import (\n    a,  # a's\n    gone\n)\n",
        "from m import (\n    a  # a's\n)\n",
    ),
    "a backslash": ("from m import a, \\\n    gone\n", "from m import a\n"),
    "a hanging indent": (
        "from m import (a,\n               gone,\n               b)\n",
        "from m import (a,\n               b)\n",
    ),
    "comments stay with their neighbours": (
        "from m import (\n    a,  # a's\n    # own\n    gone,  # gone's\n    # b's\n    b,\n)\n",
        "from m import (\n    a,  # a's\n    # own\n    # b's\n    b,\n)\n",
    ),
    "an import in a function": (
        "def f():\n    from m import gone\n    return 1\n",
        "def f():\n    return 1\n",
    ),
    "imports for type checkers": (
        "if t.TYPE_CHECKING:\n    from m import gone\n    from n import gone\nx = 1\n",
        "x = 1\n",
    ),
    "an import for type checkers with another way": (
        "if TYPE_CHECKING:\n    from m import gone\nelse:\n    gone = 1\n",
        "if TYPE_CHECKING:\n    pass\nelse:\n    gone = 1\n",
    ),
    "one of two imports for type checkers": (
        "if TYPE_CHECKING:\n    from m import gone\n    import a\n",
        "if TYPE_CHECKING:\n    import a\n",
    ),
    "an import alone in a try": (
        "try:\n    from m import gone\nexcept E:\n    x = 1\nelse:\n    from n import gone\n",
        "try:\n    pass\nexcept E:\n    x = 1\nelse:\n    pass\n",
    ),
    "an import behind a colon": ("if x: from m import gone # c\n", "if x: pass\n"),
    "an import between semicolons": (
        "a = 1; from m import gone; b = 2\nc = 1; from m import gone\n",
        "a = 1; b = 2\nc = 1\n",
    ),
    "imports of deep blocks": (
        "if a:\n    with b:\n        from m import gone\nelif c:\n    from m import gone, d\n",
        "if a:\n    with b:\n        pass\nelif c:\n    from m import d\n",
    ),
    "an inline list": ("__all__ = ['a', 'gone']\n", "__all__ = ['a']\n"),
    "a list with a line each": (
        "__all__ = [\n    'a',  # a's\n    # group\n    'gone',\n    'b',\n]\n",
        "__all__ = [\n    'a',  # a's\n    # group\n    'b',\n]\n",
    ),
    "the last entry of a list with a line each": (
        "__all__ = [\n    'a',\n    'gone',\n]\n",
        "__all__ = [\n    'a',\n]\n",
    ),
    "the only entry": ("__all__ = ['gone']\n", "__all__ = []\n"),
    "a tuple of two": ("__all__ = ('a', 'gone')\n", "__all__ = ('a',)\n"),
    "a bare tuple": (
        "__all__ = 'gone', 'a'\n__all__ += 'gone',\n",
        "__all__ = 'a',\n__all__ += ()\n",
    ),
    "an annotated list": ("__all__: list[str] = ['gone', 'a']\n", "__all__: list[str] = ['a']\n"),
    "a sum": ("__all__ = ['gone', 'a'] + b.__all__\n", "__all__ = ['a'] + b.__all__\n"),
    "added lists and calls": (
        "__all__ += ['gone', 'a']\n__all__.extend(['gone'])\n__all__.append('gone')\n",
        "__all__ += ['a']\n__all__.extend([])\n",
    ),
    "strings elsewhere stay": ("names = ['gone']\n", "names = ['gone']\n"),
    "a constant": (
        "import a\n\n# about\n_GONE = {\n    1: 2,\n}\n\nb = 1\n",
        "import a\n\nb = 1\n",
    ),
    "a constant in a group keeps the group's comment": (
        "# group\n_GONE = 1\n_B = 2\n",
        "# group\n_B = 2\n",
    ),
    "names under if and in functions are other names": (
        "if x:\n    def gone(): ...\ndef f():\n    def gone(): ...\n",
        "if x:\n    def gone(): ...\ndef f():\n    def gone(): ...\n",
    ),
}


@pytest.mark.parametrize(("source", "expected"), CASES.values(), ids=CASES.keys())
def test_only_what_is_gone_goes(source: str, expected: str):
    assert trimmed(source) == expected


def test_the_predicate_sees_the_module_as_written_and_the_path():
    seen = []
    cut(
        "from ..a.b import c as d\n",
        Cuts(is_gone_import=lambda binding: bool(seen.append(binding))),
        path="p/q.py",
    )
    assert [(it.path, it.line, it.module, it.target, it.name) for it in seen] == [
        ("p/q.py", 1, "..a.b", "c", "d")
    ]


def test_a_module_that_does_not_parse_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"cannot cut a/b\.py: it does not parse"):
        cut("def", Cuts(), path="a/b.py")


NAMES = [f"name{number}" for number in range(6)]
LEADS = st.sampled_from(["", "# note\n", "# far\n\n", "@wrap\n", "# near\n@wrap(\n    1)\n"])
BODIES = st.sampled_from([
    "def {}(a, b=1):\n    return a\n",
    "async def {}():\n    '''Doc.\n\n# not a comment\n    '''\n    # trailing\n",
    "class {}:\n    x = 1\n\n    def m(self): ...\n    # end\n",
    "def {}(): return 'ß'; \n",
])
GAPS = st.sampled_from(["", "\n", "\n\n", "x = 1\n", "\nx = 1; y = 2\n\n", "if x:\n    y = 1\n\n"])


@given(
    parts=st.lists(st.tuples(LEADS, BODIES, GAPS), min_size=1, max_size=len(NAMES)),
    place=st.integers(min_value=0, max_value=len(NAMES) - 1),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_other_definitions_keep_their_bytes(
    parts: list[tuple[str, str, str]], place: int, ending: str
):
    text = "".join(
        lead + body.format(name) + gap
        for name, (lead, body, gap) in zip(NAMES, parts, strict=False)
    ).replace("\n", ending)
    name = NAMES[place % len(parts)]
    after = cut(text, Cuts(symbols=frozenset({name})))
    assert is_valid(after, path="a.py")
    before = segments(text)
    del before[name]
    assert segments(after) == before


def segments(source: str) -> dict[str, str]:
    nodes = [node for node in ast.parse(source).body if hasattr(node, "name")]
    return {node.name: ast.get_source_segment(source, node) or "" for node in nodes}
