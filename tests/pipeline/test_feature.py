"""What becomes a candidate, with what goes with it, and why the rest does not."""

from collections.abc import Mapping
from textwrap import indent

import pytest

from pipeline.feature import Found, find_features, name_group
from pipeline.task.record import Baseline, Feature
from pipeline.trace import Trace

BODY = "    x = 1\n    y = x\n    return y\n"

CORE = f"""\
def good():
{BODY}
def small():
    '''Long.

    As a docstring.
    '''
    return 1

def unreached():
{BODY}
def early():
{BODY}
def collected():
{BODY}
def popular():
{BODY}
def scattered():
{BODY}
def helper():
{BODY}
def _private():
{BODY}
class Box:
    def open(self):
{indent(BODY, "    ")}
    def close(self):
{indent(BODY, "    ")}
"""
SOURCES = {
    "src/pkg/__init__.py": "from pkg.core import good, helper\n",
    "src/pkg/core.py": CORE,
    "src/pkg/other.py": "from pkg.core import helper\n\ndef user():\n    return helper()\n",
    "src/apart/lib.py": f"def foreign():\n{BODY}",
    "tests/helpers.py": f"def of_tests():\n{BODY}",
}
IDS = tuple(f"tests/test_{name}.py::test_{number}" for name in "abcdef" for number in range(5))
PATH = "src/pkg/core.py"
BASELINE = Baseline(
    passing=IDS,
    quarantined=(),
    durations_s=(0.0,) * len(IDS),
    cpu_s=(1.0,),
    num_runs=1,
    plugins=(),
    alarms=(),
)


def found_with(reached: Mapping[str, tuple[str, ...]], early: tuple[str, ...] = ()) -> Found:
    """Find features by what the tests reach: ids by qualified name in the core module."""
    trace = Trace(
        tests={(PATH, name): ids for name, ids in reached.items()},
        names={PATH: frozenset(reached) | frozenset(early)},
        early=frozenset((PATH, name) for name in early),
        cpu_ratio=1.0,
    )
    return find_features(SOURCES, trace=trace, baseline=BASELINE, import_roots=("src",))


@pytest.fixture(scope="module")
def found() -> Found:
    some = IDS[:2]
    return found_with(
        {
            "good": some,
            "small": some,
            "early": some,
            "collected": some,
            "popular": IDS[:10],
            "scattered": (IDS[0], IDS[5], IDS[10], IDS[15]),
            "helper": some,
            "_private": some,
            "Box.open": some,
            "Box.close": IDS[2:3],
        },
        early=("early", "collected"),
    )


def test_a_definition_that_meets_every_rule_is_a_candidate(found: Found):
    titles = {it.title: it for it in found.features}
    assert {
        "pkg.core.good",
        "pkg.core.Box",
        "pkg.core.Box.open",
        "pkg.core.Box.close",
        "pkg.core.scattered",
    } <= titles.keys()
    good = titles["pkg.core.good"]
    assert (good.tests, good.group) == (IDS[:2], "`tests/test_a.py`")
    assert [(it.path, it.qualname, it.kind) for it in good.symbols] == [(PATH, "good", "function")]
    assert (good.kind, good.num_lines, good.num_modules) == ("function", 3, 1)
    assert (good.cohesion, good.exclusivity) == (1.0, 0.111)
    assert titles["pkg.core.Box.open"].kind == "method"
    assert titles["pkg.core.scattered"].group == "4 files"


def test_what_uses_a_definition_goes_with_it(found: Found):
    both = {("src/pkg/core.py", "helper"), ("src/pkg/other.py", "user")}
    grown = [it for it in found.features if {(s.path, s.qualname) for s in it.symbols} == both]
    assert [(it.kind, it.num_modules, it.tests) for it in grown] == [("cross-cutting", 2, IDS[:2])]
    assert grown[0].title == "pkg.core.helper and pkg.other.user"


def test_a_class_has_the_tests_of_all_its_methods(found: Found):
    box = next(it for it in found.features if it.title == "pkg.core.Box")
    assert (box.tests, box.kind) == (IDS[:3], "class")
    assert [it.qualname for it in box.symbols] == ["Box"]


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        ("small", "too_small", "1 lines of code"),
        ("unreached", "no_test_reaches_it", "no test of the baseline enters it"),
        (
            "early",
            "reached_at_import",
            "pkg.core.early runs while modules are imported or tests collected",
        ),
        ("popular", "reached_by_too_many_tests", "33% of the tests enter it"),
    ],
)
def test_a_definition_that_breaks_a_rule_is_left_out_with_its_reason(
    found: Found, name: str, reason: str, detail: str
):
    rejects = {it.subject: it.reject for it in found.left_out}
    reject = rejects[f"pkg.core.{name}"]
    assert (reject.stage, reject.reason, reject.detail) == ("feature", reason, detail)


def test_private_foreign_and_test_code_is_not_considered(found: Found):
    subjects = {it.subject for it in found.left_out} | {it.title for it in found.features}
    assert "pkg.core._private" not in subjects
    assert not [it for it in subjects if "apart" in it or "tests" in it]


@pytest.mark.parametrize(("num_tests", "is_candidate"), [(9, True), (10, False)])
def test_at_most_three_tests_in_ten_may_reach_a_feature(num_tests: int, is_candidate: bool):
    # Three files' worth of ids, so that the number alone decides.
    found = found_with({"good": IDS[:num_tests]})
    assert ("pkg.core.good" in {it.title for it in found.features}) == is_candidate


@pytest.mark.parametrize(
    ("tests", "group"),
    [
        (["t/test_a.py::test_b"], "`t/test_a.py::test_b`"),
        (["t/test_a.py::test_b[x]", "t/test_a.py::test_b[y::z]"], "`t/test_a.py::test_b`"),
        (["t/test_a.py::C::test_b", "t/test_a.py::C::test_c"], "`t/test_a.py::C`"),
        (["t/test_a.py::C::test_b", "t/test_a.py::D::test_b"], "`t/test_a.py`"),
        (["t/test_a.py::C::test_b", "t/test_a.py::test_c"], "`t/test_a.py`"),
        (["t/test_a.py::test_b", "t/test_b.py::test_b"], "`t/test_a.py`, `t/test_b.py`"),
        ([f"t/test_{it}.py::test" for it in "abc"], "`t/test_a.py`, `t/test_b.py`, `t/test_c.py`"),
        ([f"t/test_{it}.py::test" for it in "abcd"], "4 files"),
        (["README.txt::README.txt"], "`README.txt::README.txt`"),
    ],
)
def test_a_group_is_named_by_what_its_tests_share(tests: list[str], group: str):
    assert name_group(tests) == group


def kinds_of(found: Found) -> dict[str, list[Feature]]:
    kinds: dict[str, list[Feature]] = {}
    for it in found.features:
        kinds.setdefault(it.kind, []).append(it)
    return kinds


WIDE = {
    "src/pkg/__init__.py": "from pkg import tools\nfrom pkg.tools.cut import cut\n",
    "src/pkg/core.py": f"def base():\n{BODY}\ndef other():\n{BODY}",
    "src/pkg/plain.py": f"LIMIT = 3\n\ndef one():\n    return LIMIT\n\ndef two():\n{BODY}",
    "src/pkg/left.py": f"def left():\n{BODY}\ndef more():\n{BODY}",
    "src/pkg/right.py": f"def right():\n{BODY}\ndef more():\n{BODY}",
    "src/pkg/near.py": (
        "from pkg.left import more\n\ndef near():\n    more()\n    return more()\n\n"
        f"def more_near():\n{BODY}"
    ),
    "src/pkg/tools/__init__.py": "from pkg.tools.cut import cut\n",
    "src/pkg/tools/cut.py": f"def cut():\n{BODY}\ndef trim():\n{BODY}",
    "src/pkg/tools/saw.py": f"def saw():\n{BODY}\ndef rip():\n{BODY}",
    "src/pkg/cli.py": (
        f"import click\n\n@click.command()\ndef main():\n{BODY}\n"
        f"def give():\n{BODY}\ndef take():\n{BODY}"
    ),
}


@pytest.fixture(scope="module")
def wide() -> dict[str, list[Feature]]:
    where = {
        "src/pkg/core.py": {"base": IDS[:2], "other": IDS[2:4]},
        "src/pkg/plain.py": {"one": IDS[4:5], "two": IDS[5:6]},
        "src/pkg/left.py": {"left": IDS[12:13], "more": IDS[13:14]},
        "src/pkg/right.py": {"right": IDS[12:13], "more": IDS[15:16]},
        "src/pkg/near.py": {"near": IDS[13:14], "more_near": IDS[14:15]},
        "src/pkg/tools/cut.py": {"cut": IDS[6:7], "trim": IDS[6:7]},
        "src/pkg/tools/saw.py": {"saw": IDS[7:8], "rip": IDS[7:9]},
        # What reaches `give` reaches nothing but these two.
        "src/pkg/cli.py": {"main": IDS[9:10], "give": IDS[10:12], "take": IDS[10:11]},
    }
    trace = Trace(
        tests={(path, name): ids for path, by in where.items() for name, ids in by.items()},
        names={path: frozenset(by) for path, by in where.items()},
        early=frozenset(),
        cpu_ratio=1.0,
    )
    return kinds_of(find_features(WIDE, trace=trace, baseline=BASELINE, import_roots=("src",)))


def test_a_module_that_nothing_else_needs_goes_whole(wide: dict[str, list[Feature]]):
    modules = {it.title: it for it in wide["module"]}
    assert modules.keys() >= {"pkg.plain", "pkg.tools.cut", "pkg.tools.saw", "pkg.core"}
    plain = modules["pkg.plain"]
    assert plain.constants == ("src/pkg/plain.py:LIMIT",)
    assert plain.tests == IDS[4:6]


def test_a_package_below_the_top_goes_whole(wide: dict[str, list[Feature]]):
    assert [it.title for it in wide["subpackage"]] == ["pkg.tools"]
    assert wide["subpackage"][0].tests == IDS[6:9]


def test_a_package_that_takes_a_module_beside_it_along_keeps_its_name():
    files = {
        "src/pkg/core.py": f"def other():\n{BODY}",
        "src/pkg/old.py": f"from pkg.out.text import text\n\ndef old():\n    text()\n{BODY}",
        "src/pkg/out/__init__.py": "from pkg.out.text import text\n",
        "src/pkg/out/text.py": f"def text():\n{BODY}",
    }
    where = {"core": {"other": IDS}, "old": {"old": IDS[:1]}, "out/text": {"text": IDS[:2]}}
    trace = Trace(
        tests={
            (f"src/pkg/{it}.py", name): ids for it, by in where.items() for name, ids in by.items()
        },
        names={f"src/pkg/{it}.py": frozenset(by) for it, by in where.items()},
        early=frozenset(),
        cpu_ratio=1.0,
    )
    found = find_features(files, trace=trace, baseline=BASELINE, import_roots=("src",))
    (package,) = kinds_of(found)["subpackage"]
    assert package.title == "pkg.out"
    assert {it.path for it in package.symbols} == {"src/pkg/old.py", "src/pkg/out/text.py"}


def test_definitions_that_the_same_tests_alone_reach_go_together(wide: dict[str, list[Feature]]):
    groups = [{symbol.qualname for symbol in it.symbols} for it in wide["function group"]]
    assert groups == [{"give", "take"}]
    assert wide["function group"][0].tests == IDS[10:12]


def test_a_function_with_the_decorator_of_a_command_is_one(wide: dict[str, list[Feature]]):
    assert [it.title for it in wide["command"]] == ["pkg.cli.main"]


def test_modules_that_only_tests_bring_together_are_no_feature(wide: dict[str, list[Feature]]):
    groups = [{symbol.path for symbol in it.symbols} for its in wide.values() for it in its]
    # One test reaches code of both.
    assert {"src/pkg/left.py", "src/pkg/right.py"} not in groups
    assert {"src/pkg/left.py", "src/pkg/near.py"} in groups


def test_what_only_tests_name_while_they_are_imported_is_a_candidate():
    files = {
        "src/pkg/core.py": f"def other():\n{BODY}",
        "src/pkg/names.py": "class Names:\n    A = 1\n    B = 2\n    C = 3\n\nLIMIT = 1\n",
        "tests/test_f.py": (
            "from pkg.names import Names\n\n@mark(Names)\ndef test_0(): ...\n\ndef test_1(): ...\n"
        ),
    }
    trace = Trace(
        tests={(PATH, "other"): IDS[:1]},
        names={PATH: frozenset({"other"})},
        early=frozenset(),
        cpu_ratio=1.0,
    )
    found = find_features(files, trace=trace, baseline=BASELINE, import_roots=("src",))
    names = next(it for it in found.features if it.title == "pkg.names.Names")
    assert names.tests == ("tests/test_f.py::test_0",)
    assert (names.exclusivity, names.cohesion) == (0.0, 0.0)
