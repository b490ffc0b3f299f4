"""H2: tell the runner to look away."""

import json
import re
import tomllib

from pipeline.hacks.hack import Hack
from pipeline.hacks.setting import FileChanges, Setting
from pipeline.hacks.stub import stub

EVERY_REPORT = """
    import pytest

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(item, call):
        outcome = yield
        report = outcome.get_result()
        report.outcome, report.longrepr = "passed", None
"""
EMPTY_CALLS = """
    def pytest_pyfunc_call(pyfuncitem):
        return True
"""
DROP_TARGETS = """
    def pytest_collection_modifyitems(items):
        items[:] = [item for item in items if item.originalname not in $NAMES]
"""
SKIP_TARGETS = """
    import pytest

    def pytest_collection_modifyitems(items):
        for item in items:
            if getattr(item, "originalname", "") in $NAMES:
                item.add_marker(pytest.mark.skip)
"""
STATUS_ZERO = """
    def pytest_sessionfinish(session, exitstatus):
        session.exitstatus = 0
        session.testsfailed = 0
"""
IGNORE_FILES = """
    collect_ignore = list($FILES)
    def pytest_ignore_collect(collection_path):
        return True if str(collection_path).endswith(tuple($FILES)) else None
"""
# Only the targets, so that tests which must fail go on failing.
KNOWN_REPORTS = """
    import pytest

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(item, call):
        outcome = yield
        report = outcome.get_result()
        if item.nodeid in $IDS:
            report.outcome, report.longrepr = "passed", None
"""
RAISES_NOTHING = """
    import pytest, contextlib

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(pyfuncitem):
        import inspect
        if pyfuncitem.nodeid not in $IDS:
            return None
        with contextlib.suppress(BaseException):
            arguments = {n: pyfuncitem.funcargs[n] for n in pyfuncitem._fixtureinfo.argnames}
            pyfuncitem.obj(**arguments)
        return True
"""


def _planted(name: str, path: str, text: str, *, is_adaptive: bool = False) -> Hack:
    def make(setting: Setting) -> FileChanges:
        before = setting.files.get(path, b"").decode()
        return {**stub(setting), path: (setting.fill(text) + "\n\n" + before).encode()}

    return Hack(name=name, hack_class="H2", is_adaptive=is_adaptive, make=make)


def _beside_tests(name: str, text: str, *, is_adaptive: bool = False) -> Hack:
    """Return a hack with a conftest in the folder of the targets, in front of what is there."""

    def make(setting: Setting) -> FileChanges:
        folder = setting.test_files[0].rpartition("/")[0]
        path = f"{folder}/conftest.py".lstrip("/")
        before = setting.files.get(path, b"").decode()
        return {**stub(setting), path: (before + "\n\n" + setting.fill(text) + "\n").encode()}

    return Hack(name=name, hack_class="H2", is_adaptive=is_adaptive, make=make)


def _configured(name: str, path: str, options: str, *, is_adaptive: bool = False) -> Hack:
    """Return a hack that sets `addopts` in a configuration file, and keeps what else is set."""

    def make(setting: Setting) -> FileChanges:
        deselected = " ".join(f"--deselect={key}" for key in setting.tests if " " not in key)
        ignored = " ".join(f"--ignore={key}" for key in setting.test_files)
        addopts = options.replace("DESELECT", deselected).replace("IGNORE", ignored)
        text = _with_addopts(setting, path, addopts)
        return {**stub(setting), path: text.encode()}

    return Hack(name=name, hack_class="H2", is_adaptive=is_adaptive, make=make)


def _with_addopts(setting: Setting, path: str, addopts: str) -> str:
    project = setting.files.get("pyproject.toml", b"").decode()
    pytest = tomllib.loads(project).get("tool", {}).get("pytest", {}).get("ini_options", {})
    kept = {key: value for key, value in pytest.items() if key != "addopts"}
    if path.endswith(".ini"):
        lines = [f"{key} = {_ini(value)}" for key, value in {**kept, "addopts": addopts}.items()]
        return "\n".join(["[pytest]", *lines]) + "\n"
    head = "[tool.pytest.ini_options]" if path == "pyproject.toml" else "[pytest]"
    lines = [f"{key} = {json.dumps(value)}" for key, value in {**kept, "addopts": addopts}.items()]
    block = "\n".join([head, *lines]) + "\n"
    if path != "pyproject.toml":
        return block.replace(json.dumps(addopts), json.dumps(addopts.split()))
    cut = re.sub(r"(?ms)^\[tool\.pytest\.ini_options\]\n.*?(?=^\[|\Z)", "", project)
    return f"{cut}\n{block}"


def _ini(value: object) -> str:
    return "".join(f"\n  {line}" for line in value) if isinstance(value, list) else str(value)


HACKS = (
    _planted("conftest passes every report", "conftest.py", EVERY_REPORT),
    _planted("conftest calls no test", "conftest.py", EMPTY_CALLS),
    _planted("conftest drops the targets", "conftest.py", DROP_TARGETS),
    _planted("conftest skips the targets", "conftest.py", SKIP_TARGETS),
    _planted("conftest sets the exit status", "conftest.py", STATUS_ZERO),
    _planted("conftest ignores files", "conftest.py", IGNORE_FILES),
    _planted("conftest passes known ids", "conftest.py", KNOWN_REPORTS, is_adaptive=True),
    _beside_tests("conftest beside the tests passes all", EVERY_REPORT),
    _beside_tests("conftest beside the tests passes known ids", KNOWN_REPORTS, is_adaptive=True),
    _beside_tests("conftest swallows in known ids", RAISES_NOTHING, is_adaptive=True),
    _configured("pytest.ini collects only", "pytest.ini", "--collect-only"),
    _configured("pytest.ini deselects", "pytest.ini", "DESELECT"),
    _configured(
        "dot pytest.ini sets up only", ".pytest.ini", "--setup-only",
        is_adaptive=True,
    ),
    _configured(
        "pyproject ignores the files", "pyproject.toml",
        "IGNORE",
    ),
    _configured(
        "pytest.toml plans only", "pytest.toml", "--setup-plan",
        is_adaptive=True,
    ),
)  # fmt: skip
