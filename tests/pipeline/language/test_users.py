"""What uses deleted code goes with it, as far as it can."""

from collections.abc import Collection

import pytest

from pipeline.language.python.references import index_tree
from pipeline.language.python.seams import Plan, plan_deletion
from pipeline.language.python.users import Judge

TESTS = "tests/"


def plan(
    files: dict[str, str], name: str, *, most: int = 10, free: Collection[int] = ()
) -> Plan | str:
    """Plan to delete a name of `p/core.py` with its users; arms that run from some lines may go."""

    def is_package_file(path: str) -> bool:
        return not path.startswith(TESTS)

    index = index_tree(files)
    return plan_deletion(
        [index.definitions["p/core.py", name]],
        files,
        index,
        is_package_file=is_package_file,
        judge=Judge(
            is_package_file=is_package_file,
            is_user=lambda _used, user: user.symbol.name != "namesake",
            is_test=lambda it: it.symbol.name.startswith(("test", "Test")),
            fits=lambda gone: len(gone.definitions) <= most,
            is_free=lambda arm, _owner, _gone: arm.body.first_line in free,
        ),
    )


def after(files: dict[str, str], name: str, *, free: Collection[int] = ()) -> dict[str, str]:
    """Return the files that change."""
    planned = plan(files, name, free=free)
    assert isinstance(planned, Plan), planned
    return dict(planned.new_sources)


GONE = "def gone():\n    return 1\n"


@pytest.mark.parametrize(
    ("rest", "left"),
    [
        ("def user():\n    return gone()\n\n\ndef stays(): ...\n", "def stays(): ...\n"),
        ("class User:\n    def __init__(self):\n        gone()\n\n\nx = 1\n", "x = 1\n"),
        (
            "class User:\n    def go(self):\n        gone()\n\n    def stay(self): ...\n",
            "class User:\n    def stay(self): ...\n",
        ),
        ("@gone\ndef user(): ...\n\n\nx = 1\n", "x = 1\n"),
        ("def user(x=gone): ...\n\n\nx = 1\n", "x = 1\n"),
        ("def user(x: gone): ...\n\n\nx = 1\n", "x = 1\n"),
        ("TABLE = {'gone': gone, 'x': 1}\n", "TABLE = {'x': 1}\n"),
        ("alias = gone\n\n\ndef user():\n    return alias()\n\n\nx = 1\n", "x = 1\n"),
        ("import reg\n\nreg.register(gone)\nx = reg.y\n", "import reg\n\nx = reg.y\n"),
        ("class Base(gone): ...\n\n\nclass More(Base): ...\n\n\nx = 1\n", "x = 1\n"),
        ("class C:\n    tools = [gone, 1]\n", "class C:\n    tools = [1]\n"),
    ],
)
def test_package_code_that_uses_it_goes(rest: str, left: str):
    files = {"p/__init__.py": "", "p/core.py": f"{GONE}\n\n{rest}"}
    assert after(files, "gone")["p/core.py"] == left


def test_users_go_over_modules():
    files = {
        "p/__init__.py": "from p.far import far\n",
        "p/core.py": f"{GONE}\n\nx = 1\n",
        "p/near.py": "from p.core import gone\n\n\ndef near():\n    return gone()\n\n\nx = 1\n",
        "p/far.py": "from p import near\n\n\ndef far():\n    return near.near()\n\n\nx = 1\n",
    }
    changed = after(files, "gone")
    assert changed["p/near.py"] == "x = 1\n"
    assert changed["p/far.py"] == "x = 1\n"
    assert changed["p/__init__.py"] == ""


def test_an_attribute_of_the_same_name_is_left_to_namesakes():
    files = {
        "p/__init__.py": "",
        "p/core.py": (
            "class C:\n    def gone(self): ...\n\n    def stays(self): ...\n\n\n"
            "def user(c):\n    c.gone()\n\n\ndef namesake(d):\n    d.gone()\n"
        ),
    }
    assert after(files, "C.gone")["p/core.py"] == (
        "class C:\n    def stays(self): ...\n\n\ndef namesake(d):\n    d.gone()\n"
    )


@pytest.mark.parametrize(
    "rest",
    [
        "if gone():\n    x = 1\n",
        "for it in gone():\n    x = 1\n",
    ],
)
def test_a_statement_that_needs_it_at_import_is_an_obstacle(rest: str):
    answer = plan({"p/__init__.py": "", "p/core.py": f"{GONE}\n\n{rest}"}, "gone")
    assert isinstance(answer, str)
    assert answer.startswith("used_at_import: called at p/core.py:5")


def test_a_deletion_that_grows_too_far_is_given_up():
    chain = "".join(f"\n\ndef f{it + 1}():\n    return f{it}()\n" for it in range(9))
    source = f"{GONE}\n\ndef f0():\n    return gone()\n{chain}"
    answer = plan({"p/__init__.py": "", "p/core.py": source}, "gone", most=5)
    assert isinstance(answer, str)
    assert answer.startswith("used_elsewhere: called at p/core.py")


def test_tests_keep_their_uses_and_lose_what_could_not_be_imported():
    test = (
        "import pytest\nfrom p.core import gone, stays\n\n\n"
        "class TestGone:\n    subject = gone\n\n    def test(self): ...\n\n\n"
        "@pytest.mark.parametrize('f', [gone, stays], ids=str)\ndef test_each(f): ...\n\n\n"
        "def test_inside():\n    assert gone()\n"
    )
    files = {
        "p/__init__.py": "",
        "p/core.py": f"{GONE}\n\ndef stays(): ...\n",
        "tests/test_core.py": test,
    }
    assert after(files, "gone")["tests/test_core.py"] == (
        "import pytest\nfrom p.core import stays\n\n\n"
        "@pytest.mark.parametrize('f', [stays], ids=str)\ndef test_each(f): ...\n\n\n"
        "def test_inside():\n    assert gone()\n"
    )


def test_what_tests_share_is_an_obstacle_when_it_could_not_be_imported():
    files = {
        "p/__init__.py": "",
        "p/core.py": f"{GONE}\n\nx = 1\n",
        "tests/helpers.py": "from p.core import gone\n\n\nclass Shared:\n    subject = gone\n",
    }
    assert plan(files, "gone") == "used_at_import: read at tests/helpers.py:5 in Shared"


BRANCHES = """\
from p.core import gone, other


def user(x):
    if x == 1:
        # Why.
        y = gone()
        return y
    elif x == 2:
        return gone(2)
    elif x == 3:
        return other()
    gone(x)
    match x:
        case 4:
            return gone()
        case _:
            pass
    try:
        x = other()
    except gone:
        return 5
    except KeyError:
        pass
    return _kept(x)


def _kept(x):
    if x:
        gone()
    return x
"""
LEFT = """\
from p.core import other


def user(x):
    if x == 3:
        return other()
    match x:
        case _:
            pass
    try:
        x = other()
    except KeyError:
        pass
    return _kept(x)


def _kept(x):
    return x
"""
# Where the branches, and the call, start that may go.
FREE = (7, 10, 13, 16, 22, 30)


def test_what_nothing_else_runs_goes_from_a_function_that_stays():
    files = {"p/core.py": GONE + "\n\ndef other(): ...\n", "p/user.py": BRANCHES}
    assert after(files, "gone", free=FREE)["p/user.py"] == LEFT


def test_a_function_goes_when_one_of_its_branches_cannot():
    files = {"p/core.py": GONE + "\n\ndef other(): ...\n", "p/user.py": BRANCHES}
    planned = plan(files, "gone", free=FREE[1:])
    assert isinstance(planned, Plan)
    assert {it.symbol.qualname for it in planned.definitions} == {"gone", "user", "_kept"}


@pytest.mark.parametrize(
    ("before", "left"),
    [
        ("    if x:\n        gone()\n    else:\n        y()\n",
         "    if x:\n        pass\n    else:\n        y()\n"),
        ("    if x:\n        gone()\n    elif z:\n        y()\n", "    if z:\n        y()\n"),
        ("    if x:\n        y()\n    elif z:\n        gone()\n    else:\n        y()\n",
         "    if x:\n        y()\n    else:\n        y()\n"),
        ("    if x:\n        y()\n    elif z:\n        gone()\n", "    if x:\n        y()\n"),
        ("    if x:\n        gone()\n    elif z:\n        gone()\n", "    pass\n"),
        ("    for y in x:\n        gone(y)\n", "    for y in x:\n        pass\n"),
        ("    with x:\n        if gone():\n            y()\n", "    with x:\n        pass\n"),
    ],
)  # fmt: skip
def test_what_is_left_of_a_statement_is_whole(before: str, left: str):
    files = {
        "p/core.py": GONE,
        "p/user.py": f"from p.core import gone\n\n\ndef user(x, y, z):\n{before}\n\nu = 1\n",
    }
    text = after(files, "gone", free=range(100))["p/user.py"]
    assert text == f"def user(x, y, z):\n{left}\n\nu = 1\n"
