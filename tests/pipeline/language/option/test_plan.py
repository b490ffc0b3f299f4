"""Options of a whole tree: who shares them, what goes with them, what is refused."""

import textwrap
from collections.abc import Mapping

import pytest

from pipeline.language.python.option.code import read_code
from pipeline.language.python.option.find import FoundOption, find_options
from pipeline.language.python.option.plan import OptionPlan, Tree
from pipeline.language.python.references import index_tree


def tree_of(files: Mapping[str, str]) -> Tree:
    sources = {path: textwrap.dedent(text) for path, text in files.items()}
    return Tree(
        sources=sources,
        index=index_tree(sources),
        code=read_code(sources),
        is_package_file=lambda path: path.startswith("pkg/"),
    )


def found_in(files: Mapping[str, str], *, call: str = "f(1, strict=True)") -> FoundOption:
    """Return the option that one test passes."""
    test = f"from pkg.a import *\n\ndef test_it():\n    {call}\n"
    found = list(find_options(tree_of({"tests/test_a.py": test, **files})))
    assert len(found) == 1, found
    return found[0]


def planned(files: Mapping[str, str], *, call: str = "f(1, strict=True)") -> OptionPlan:
    found = found_in(files, call=call)
    assert isinstance(found.plan, OptionPlan), found.plan
    return found.plan


def texts(plan: OptionPlan) -> dict[str, str]:
    return dict(plan.plan.new_sources)


def test_private_helpers_and_imports_of_a_branch_go_with_it() -> None:
    plan = planned({
        "pkg/a.py": """\
            import json
            import re

            _PATTERN = re.compile("a")


            def _check(x):
                return _PATTERN.match(x)


            def f(x, strict=False):
                if strict:
                    _check(x)
                return json.dumps(x)
            """
    })
    assert texts(plan) == {
        "pkg/a.py": textwrap.dedent("""\
            import json


            def f(x):
                return json.dumps(x)
            """)
    }
    assert plan.plan.seams == ("pkg/a.py:_PATTERN", "pkg/a.py:_check", "pkg/a.py:re")
    assert plan.plan.option == "strict"


def test_a_helper_that_others_use_stays() -> None:
    plan = planned({
        "pkg/a.py": """\
            def _check(x): ...


            def f(x, strict=False):
                if strict:
                    _check(x)
                return x


            def g(x):
                return _check(x)
            """
    })
    assert "def _check" in texts(plan)["pkg/a.py"]
    assert plan.plan.seams == ()


SHARED = {
    "pkg/a.py": """\
        from pkg.b import Reader, _clean


        def f(x, strict=False):
            return Reader(x, strict=strict).read()


        def f_all(xs, strict=False):
            return [f(x, strict) for x in xs]
        """,
    "pkg/b.py": """\
        class Reader:
            def __init__(self, x, strict=False):
                self.x = x
                self._strict = strict

            def read(self):
                return _clean(self.x, strict=self._strict)


        def _clean(x, *, strict=False):
            if strict:
                raise ValueError(x)
            return x
        """,
}


def test_functions_that_hand_an_option_on_lose_it_together() -> None:
    plan = planned(SHARED)
    assert texts(plan)["pkg/a.py"] == textwrap.dedent("""\
        from pkg.b import Reader, _clean


        def f(x):
            return Reader(x).read()


        def f_all(xs):
            return [f(x) for x in xs]
        """)
    assert {key[1] for key in plan.scope.owners} == {"f", "f_all", "Reader.__init__"}


def test_an_option_of_a_class_is_asked_for_by_its_own_calls() -> None:
    found = found_in(SHARED, call="Reader(1, strict=True)")
    assert found.owners[0] == ("pkg/b.py", "Reader.__init__")
    assert isinstance(found.plan, OptionPlan)
    assert "_strict" not in texts(found.plan)["pkg/b.py"]


def test_overriding_methods_lose_it_together() -> None:
    plan = planned(
        {
            "pkg/a.py": """\
                class Box:
                    def get(self, x, strict=False):
                        if strict:
                            raise ValueError
                        return x


                class Small(Box):
                    def get(self, x, strict=False):
                        if strict:
                            raise KeyError
                        return super().get(x)
                """
        },
        call="Box().get(1, strict=True)",
    )
    assert "strict" not in texts(plan)["pkg/a.py"]
    assert "raise" not in texts(plan)["pkg/a.py"]


def test_a_subclass_hands_it_to_the_constructor_of_its_base() -> None:
    plan = planned(
        {
            "pkg/a.py": """\
                class Box:
                    def __init__(self, strict=False):
                        self.strict = strict

                    def get(self):
                        return 1 if self.strict else 2


                class Small(Box):
                    def __init__(self, x, strict=False):
                        super().__init__(strict=strict)
                        self.x = x
                """
        },
        call="Small(1, strict=True)",
    )
    assert "strict" not in texts(plan)["pkg/a.py"]
    assert "super().__init__()" in texts(plan)["pkg/a.py"]


def test_constructors_take_it_at_places_of_their_own() -> None:
    plan = planned(
        {
            "pkg/a.py": """\
                class Box:
                    def __init__(self, x, strict=False):
                        self.x = 1 if strict else x


                class Wide(Box):
                    def __init__(self, x, y, strict=False):
                        Box.__init__(self, x, strict)
                        self.y = y


                class Tall(Wide):
                    def __init__(self, x, y, z, strict=False):
                        super().__init__(x, y, strict=strict)
                        self.z = z
                """
        },
        call="Wide(1, 2, True)",
    )
    assert "strict" not in texts(plan)["pkg/a.py"]
    assert "Box.__init__(self, x)" in texts(plan)["pkg/a.py"]


def test_a_base_keeps_what_it_is_given_by_a_place_of_its_own() -> None:
    source = """\
        class Box:
            def __init__(self, x, strict=False):
                self.x = 1 if strict else x


        class Wide(Box):
            def __init__(self, x, y, strict=False):
                super().__init__(x, strict)
        """
    plan = planned({"pkg/a.py": source}, call="Wide(1, 2, True)")
    assert plan.scope.owners == (("pkg/a.py", "Wide.__init__"),)
    assert "super().__init__(x, False)" in texts(plan)["pkg/a.py"]


def test_a_stub_loses_the_parameter_too() -> None:
    plan = planned({
        "pkg/a.py": "def f(x, strict=False):\n    return 1 if strict else x\n",
        "pkg/a.pyi": "def f(x: int, strict: bool = ...) -> int: ...\n",
    })
    assert texts(plan)["pkg/a.pyi"] == "def f(x: int) -> int: ...\n"


@pytest.mark.parametrize("call", ["f(1, True)", "pkg.a.f(1, strict=True)"])
def test_tests_pass_an_option_by_its_place_or_through_a_module(call: str) -> None:
    plan = planned(
        {"pkg/a.py": "def f(x, strict=False):\n    return 1 if strict else x\n"}, call=call
    )
    assert texts(plan) == {"pkg/a.py": "def f(x):\n    return x\n"}


def test_an_option_that_tests_pass_as_its_default_only_is_none() -> None:
    files = {
        "pkg/a.py": "def f(x, strict=False):\n    return 1 if strict else x\n",
        "tests/test_a.py": "def test_a():\n    f(1, strict=False)\n",
    }
    assert list(find_options(tree_of(files))) == []


COMMAND = """\
    import argparse
    import json


    def _parser():
        parser = argparse.ArgumentParser()
        parser.add_argument("path")
        parser.add_argument(
            "-j",
            "--as-json",
            action="store_true",
            help="write JSON",
        )
        parser.add_argument("--depth", default=1, type=int)
        return parser


    def main(argv):
        args = _parser().parse_args(argv)
        if args.as_json:
            return json.dumps(args.path)
        return args.path * args.depth
    """


def test_a_flag_goes_with_the_branch_that_asks_for_it() -> None:
    plan = planned({"pkg/a.py": COMMAND}, call="main(['--as-json', 'x'])")
    assert texts(plan)["pkg/a.py"] == textwrap.dedent("""\
        import argparse


        def _parser():
            parser = argparse.ArgumentParser()
            parser.add_argument("path")
            parser.add_argument("--depth", default=1, type=int)
            return parser


        def main(argv):
            args = _parser().parse_args(argv)
            return args.path * args.depth
        """)
    assert plan.scope.owners == (("pkg/a.py", "_parser"),)
    assert plan.plan.option_docs == ("write JSON",)


def test_a_flag_leaves_its_default() -> None:
    plan = planned({"pkg/a.py": COMMAND}, call="main(['--depth=2', 'x'])")
    assert "return args.path * 1\n" in texts(plan)["pkg/a.py"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("vars(args)", "taken as a dictionary"),
        ("getattr(args, 'as_json')", "set or named elsewhere"),
        ("args.as_json = 1", "set or named elsewhere"),
        ("box.as_json", "asked of more than parsed arguments"),
    ],
)
def test_a_flag_with_other_uses_is_refused(line: str, reason: str) -> None:
    source = f"{textwrap.dedent(COMMAND)}\n\ndef other(args, box):\n    {line}\n"
    plan = found_in({"pkg/a.py": source}, call="main(['--as-json', 'x'])").plan
    assert isinstance(plan, str), plan
    assert reason in plan


REFUSED = {
    "bound anew": (
        "def f(x, strict=False):\n    strict = strict or x\n    return strict\n",
        "binds it anew",
    ),
    "bound by a nested function": (
        "def f(x, strict=False):\n    def inner(strict=strict): ...\n    return inner\n",
        "binds it anew",
    ),
    "seen as data": ("def f(x, strict=False):\n    return locals()\n", "calls locals"),
    "before more arguments": (
        "def f(x, strict=False, *more):\n    return strict\n",
        "takes more arguments",
    ),
    "decorated": (
        "@magic\ndef f(x, strict=False):\n    return strict\n",
        "is decorated with magic",
    ),
    "passed by the library": (
        "def f(x, strict=False):\n    return strict\n\ndef g(x):\n    return f(x, strict=True)\n",
        "another value is passed at pkg/a.py:5",
    ),
    "passed by its place": (
        "def f(x, strict=False):\n    return strict\n\ndef g(x):\n    return f(x, 1)\n",
        "another value is passed at pkg/a.py:5",
    ),
    "passed through partial": (
        "def f(x, strict=False):\n    return strict\n\ng = partial(f, strict=True)\n",
        "another value is passed at pkg/a.py:4",
    ),
    "passed as rest": (
        "def f(x, strict=False):\n    return x\n\n\ndef g(x):\n    return f(**{'strict': x})\n",
        "it may be passed at pkg/a.py:6",
    ),
    "no generator any more": (
        "def f(x, strict=False):\n    if strict:\n        yield x\n    return\n",
        "would be no generator",
    ),
    "a name that is never set": (
        "def f(x, strict=False):\n    if strict:\n        y = 1\n    if x:\n        return y\n",
        "would read y",
    ),
    "a default of its own": (
        "LOW = 1\n\ndef f(x, strict=LOW):\n    for LOW in x: ...\n    return strict\n",
        "has its own LOW",
    ),
    "a namesake with another default": (
        "def f(x, strict=False):\n    return x\n\nclass A:\n    def f(self, strict=True): ...\n",
        "a namesake of f has another default",
    ),
}


@pytest.mark.parametrize(("source", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_sure_to_be_right_is_refused(source: str, reason: str) -> None:
    plan = found_in({"pkg/a.py": source}).plan
    assert isinstance(plan, str), plan
    assert reason in plan
