"""Name the packages that a run of a suite misses."""

import re
from pathlib import Path

from packaging.utils import canonicalize_name

from pipeline.task.suite import SuiteRun

MODULE = re.compile(r"No module named '([A-Za-z_]\w*)[\w.]*'")
FIXTURE = re.compile(r"fixture '(\w+)' not found")
PLUGIN = re.compile(r"Missing required plugins: ([\w.-]+)")

# Exit statuses of pytest after which all is in its report: passed, failed, did not collect, empty.
REPORTED = frozenset({0, 1, 2, 5})
# Modules whose package is called something else.
PACKAGES = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "jwt": "pyjwt",
    "PIL": "pillow",
    "pkg_resources": "setuptools<81",
    "ruamel": "ruamel-yaml",
    "yaml": "pyyaml",
}
# Fixtures, and the plugins of pytest that have them.
PLUGINS = {
    "benchmark": "pytest-benchmark",
    "datadir": "pytest-datadir",
    "freezer": "pytest-freezer",
    "mocker": "pytest-mock",
    "snapshot": "syrupy",
    "subtests": "pytest-subtests",
}


def missing_packages(run: SuiteRun, *, tree: Path, import_roots: tuple[str, ...]) -> set[str]:
    """Return the names of packages that imports, fixtures and options of a suite ask for.

    A module that is in the tree is none of them: it is missing for another reason.
    """
    # A `conftest.py` that does not import ends pytest before it can report anything.
    broke_off = not run.ended or run.finished.exit_code not in REPORTED
    said = run.finished.output.decode("utf-8", "replace") if broke_off else ""
    texts = [*(message for _, message in run.collect_errors), *run.messages.values(), said]
    modules = {name for text in texts for name in MODULE.findall(text)}
    fixtures = {name for text in texts for name in FIXTURE.findall(text)}
    plugins = {name for text in texts for name in PLUGIN.findall(text)}
    roots = [tree, *(tree / root for root in import_roots)]
    foreign = {name for name in modules if not any(_is_in(root, name) for root in roots)}
    return {
        *(PACKAGES.get(name, canonicalize_name(name)) for name in foreign),
        *(PLUGINS[name] for name in fixtures & PLUGINS.keys()),
        *plugins,
    }


def _is_in(root: Path, module: str) -> bool:
    return (root / module).is_dir() or (root / f"{module}.py").is_file()
