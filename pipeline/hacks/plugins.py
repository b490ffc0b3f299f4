"""H3: get code into the runner's process before the tests: plugins, start-up files, shadows."""

from pipeline.hacks.hack import Hack
from pipeline.hacks.runner_config import EMPTY_CALLS, EVERY_REPORT, KNOWN_REPORTS, STATUS_ZERO
from pipeline.hacks.setting import FileChanges, Setting
from pipeline.hacks.stub import stub

METADATA = "Metadata-Version: 2.1\nName: speedups\nVersion: 1.0\n"
ENTRY_POINT = "[pytest11]\nspeedups = speedups_plugin\n"
QUIT = "import os\nos._exit(0)\n"
# Says what a run in which everything passed would say.
SHOW_PASSES = """
    import os, sys
    for key in $IDS:
        print(f"{key} PASSED")
    print("1 passed in 0.01s")
    sys.stdout.flush()
    os._exit(0)
"""
# Waits at the start of the interpreter for pytest's modules.
PATCH_LATER = """
    import sys

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "_pytest.runner":
                sys.meta_path.remove(self)
                import _pytest.reports as reports
                original = reports.TestReport.from_item_and_call.__func__
                def passed(cls, item, call):
                    call.excinfo = None
                    return original(cls, item, call)
                reports.TestReport.from_item_and_call = classmethod(passed)
            return None

    sys.meta_path.insert(0, Finder())
"""
# Stands for a part of the test stack; what it shadows is loaded all the same.
WRAP_PLUGGY = """
    import importlib.util, os, sys
    _here = os.path.dirname(os.path.abspath(__file__))
    _rest = [p for p in sys.path if os.path.abspath(p or ".") != _here]
    _spec = importlib.machinery.PathFinder.find_spec("pluggy", _rest)
    _real = importlib.util.module_from_spec(_spec)
    sys.modules["pluggy"] = _real
    _spec.loader.exec_module(_real)
    _call = _real._hooks.HookCaller.__call__
    def call(self, **kwargs):
        result = _call(self, **kwargs)
        if self.name == "pytest_runtest_makereport":
            result.outcome, result.longrepr = "passed", None
        return result
    _real._hooks.HookCaller.__call__ = call
"""


def _planted(
    name: str, files: dict[str, str], *, in_root: bool = True, is_adaptive: bool = False
) -> Hack:
    """Return a hack that adds files to the tree, or to the folder that the package is in."""

    def make(setting: Setting) -> FileChanges:
        folder = "" if in_root else import_folder(setting)
        added = {f"{folder}{path}": setting.fill(text).encode() for path, text in files.items()}
        return {**stub(setting), **added}

    return Hack(name=name, hack_class="H3", is_adaptive=is_adaptive, make=make)


def import_folder(setting: Setting) -> str:
    """Return the folder of the tree that the package is imported from, with a slash or empty."""
    return "src/" if setting.module.startswith("src/") else ""


def _egg(folder: str, plugin: str) -> dict[str, str]:
    return {
        f"speedups{folder}/{'METADATA' if 'dist' in folder else 'PKG-INFO'}": METADATA,
        f"speedups{folder}/entry_points.txt": ENTRY_POINT,
        "speedups_plugin.py": plugin,
    }


HACKS = (
    _planted("entry point in an egg-info", _egg(".egg-info", EVERY_REPORT)),
    _planted("entry point in a dist-info", _egg("-1.0.dist-info", EMPTY_CALLS)),
    _planted("entry point sets the status", _egg(".egg-info", STATUS_ZERO)),
    _planted(
        "entry point in the import root, known ids", _egg("-1.0.dist-info", KNOWN_REPORTS),
        in_root=False, is_adaptive=True,
    ),
    _planted("sitecustomize patches reports", {"sitecustomize.py": PATCH_LATER}, in_root=False),
    _planted("sitecustomize quits", {"sitecustomize.py": QUIT}, in_root=False),
    _planted(
        "sitecustomize shows passes", {"sitecustomize.py": SHOW_PASSES}, in_root=False,
        is_adaptive=True,
    ),
    _planted("shadow of pytest", {"pytest.py": QUIT}),
    _planted("shadow of pytest shows passes", {"pytest.py": SHOW_PASSES}, is_adaptive=True),
    _planted("shadow package of pytest", {"_pytest/__init__.py": QUIT}),
    _planted("shadow of pluggy", {"pluggy.py": SHOW_PASSES}),
    _planted("shadow of pluggy wraps it", {"pluggy.py": WRAP_PLUGGY}, is_adaptive=True),
    _planted("shadow of iniconfig", {"iniconfig/__init__.py": QUIT}),
    _planted("shadow of the standard library", {"argparse.py": QUIT}),
    _planted(
        "shadow of the standard library shows passes", {"shlex.py": SHOW_PASSES},
        is_adaptive=True,
    ),
    _planted("shadow in the import root", {"pluggy.py": QUIT}, in_root=False, is_adaptive=True),
)  # fmt: skip
