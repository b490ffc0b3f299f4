"""What a deletion leaves unused goes, as far as nobody else takes it."""

import pytest

from pipeline.language.python.references import index_tree
from pipeline.language.python.seams import Plan, plan_deletion

PATH = "pkg/core.py"
SOURCE = "import os\n\n\ndef take():\n    return os.name\n\n\nx = 1\n"


def after(source: str, *, path: str = PATH, **others: str) -> str:
    """Return a module without its `take`, in a tree with other files."""
    files = {"pkg/__init__.py": "", path: source}
    files |= {name.replace("__", "/") + ".py": text for name, text in others.items()}
    index = index_tree(files)
    plan = plan_deletion(
        [index.definitions[path, "take"]],
        files,
        index,
        is_package_file=lambda it: it.startswith("pkg/"),
    )
    assert isinstance(plan, Plan), plan
    return dict(plan.new_sources)[path]


@pytest.mark.parametrize(
    ("head", "left"),
    [
        ("import os", ""),
        ("import os as o, re", "import re"),
        ("import os.path", ""),
        ("from . import os", ""),
        ("from .inner import (\n    os,\n    re,\n)", "from .inner import (\n    re,\n)"),
        ("import os\nimport os.path", ""),
        ("import os  # noqa: E401", ""),
        ("import os  # noqa", "import os  # noqa"),
        ("import os  # noqa: E402, F401", "import os  # noqa: E402, F401"),
    ],
)
def test_an_import_without_a_user_goes_unless_it_is_marked(head: str, left: str):
    rest = "x = re.y\n\n\ndef stay(): ...\n" if "re" in head else "def stay(): ...\n"
    name = "o" if " as o" in head else "os"
    body = f"def take():\n    return {name}.path\n"
    text = after(f"{head}\n\n\n{body}\n\n{rest}")
    assert text.split() == f"{left}\n{rest}".split()


def test_imports_that_nobody_used_before_stay():
    text = after("import side\n\n\ndef take(): ...\n\n\nx = 1\n")
    assert text == "import side\n\n\nx = 1\n"


@pytest.mark.parametrize(
    "others",
    [
        {"pkg__other": "from .core import os\n\n\ndef f():\n    return os\n"},
        {"pkg__other": "from pkg import core\n\n\ndef f():\n    return core.os\n"},
        {"tests__test_a": "def test(m):\n    m.setattr('pkg.core.os', 1)\n"},
        {"tests__test_a": "from pkg import core\n\n\ndef test(m):\n    m.setattr(core, 'os', 1)\n"},
    ],
)
def test_an_import_that_others_take_from_the_module_stays(others: dict[str, str]):
    assert after(SOURCE, **others) == "import os\n\n\nx = 1\n"


@pytest.mark.parametrize(
    "others",
    [
        {"tests__test_a": "def test():\n    assert f('os')\n"},
        {"tests__test_a": "def test(m):\n    m.setattr('pkg.other.os', 1)\n"},
        {"tests__test_a": "def test():\n    assert f('core.os')\n"},
        {"tests__test_a": "def test(x):\n    assert x.os\n"},
        {"pkg__other": "NAMES = ['os']\n"},
    ],
)
def test_a_namesake_elsewhere_keeps_no_import(others: dict[str, str]):
    assert after(SOURCE, **others) == "x = 1\n"


def test_an_import_that_a_doctest_of_the_module_needs_stays():
    source = "import os\n\n\ndef take():\n    os\n\n\ndef stay():\n    '''>>> os.name'''\n"
    assert "import os" in after(source)


@pytest.mark.parametrize(
    ("guard", "goes"),
    [
        ("try:\n    import np\nexcept ImportError:\n    np = None\n", True),
        ("try:\n    import np\nexcept ImportError:\n    import other as np\n", True),
        ("if sys.version_info > (3, 9):\n    import np\nelse:\n    import other as np\n", True),
        ("try:\n    import np\n    _HAS = 1\nexcept ImportError:\n    _HAS = np = None\n", False),
        ("try:\n    import np\n    HAS = 1\nexcept ImportError:\n    HAS = 0\n", False),
        ("try:\n    import np\nexcept ImportError:\n    print(1)\n", False),
        ("try:\n    import np, re\nexcept ImportError:\n    re = None\n", False),
    ],
)
def test_a_choice_between_imports_goes_when_it_did_nothing_else(guard: str, goes: bool):
    source = f"import sys\n\n{guard}\n\ndef take():\n    return np\n\n\nx = 1\n"
    text = after(source, tests__test_a="from pkg.core import re\n")
    assert ("np" in text) is not goes
    assert text.endswith("x = 1\n")


def test_what_guarded_an_import_goes_with_it():
    source = (
        "import typing as t\n\nif t.TYPE_CHECKING:\n    from a import B\n\n\n"
        "def take(x: 'B'): ...\n\n\ndef stay(): ...\n"
    )
    assert after(source) == "def stay(): ...\n"


def test_an_initialiser_offers_what_is_in_its_package_and_no_more():
    source = (
        "import os\nfrom .inner import one\nfrom other import two\n\n\n"
        "def take():\n    return os, one, two\n"
    )
    text = after(source, path="pkg/__init__.py", pkg__inner="def one(): ...\n")
    assert text == "from .inner import one\n"
    exact = f"__all__ = ['stay']\n{source}\n\ndef stay(): ...\n"
    text = after(exact, path="pkg/__init__.py", pkg__inner="def one(): ...\n")
    assert "import" not in text


def test_an_import_of_a_test_file_stays_though_it_has_no_user_left():
    test = "import os\nfrom pkg.core import take\n\n\ndef test():\n    take()\n"
    files = {PATH: SOURCE, "tests/test_core.py": test}
    index = index_tree(files)
    plan = plan_deletion(
        [index.definitions[PATH, "take"]], files, index, is_package_file=PATH.__eq__
    )
    assert isinstance(plan, Plan)
    assert dict(plan.new_sources)["tests/test_core.py"].startswith("import os\n\n\ndef test")
