"""Load exactly the plugins that are named, and let nothing of the tree take the runner's place."""

import importlib.machinery
import importlib.metadata
import os
import sys

# Folders of tests are called so, and so are packages beside the one that one wants.
COMMON = {"conftest", "docs", "examples", "test", "testing", "tests"}


def install(names):
    """Pin the plugins (entry points of `pytest11`, in order) and the modules of the runner."""
    trusted = [path for path in sys.path if not (path + "/").startswith(os.getcwd() + "/")]
    pin_plugins(names, [path for path in trusted if path.startswith(sys.prefix + "/")])
    pin_modules(trusted)


def pin_plugins(names, folders):
    """Make pytest load these entry points, of distributions in these folders alone."""
    from _pytest.config import PytestPluginManager
    from pluggy._manager import DistFacade

    # Without a name there is nothing to look for in all that is installed.
    installed = list(importlib.metadata.distributions(path=folders)) if names else []
    known = {
        (entry.group, entry.name): (distribution, entry)
        for distribution in reversed(installed)
        for entry in distribution.entry_points
    }

    def load(self, group, name=None):
        loaded = 0
        for wanted in names if name is None else [name]:
            distribution, entry = known.get((group, wanted), (None, None))
            if entry is None or self.get_plugin(wanted) or self.is_blocked(wanted):
                continue
            plugin = entry.load()
            self.register(plugin, name=wanted)
            self._plugin_distinfo.append((plugin, DistFacade(distribution)))
            loaded += 1
        return loaded

    PytestPluginManager.load_setuptools_entrypoints = load


def pin_modules(trusted):
    """Find a module at the top of the Environment or the interpreter before one of the tree.

    `python -m pytest` puts the tree first, so that its `json.py` would be everybody's.
    """
    from _pytest.assertion.rewrite import AssertionRewritingHook

    find = importlib.machinery.PathFinder.find_spec

    class Pins:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if path is None and name not in COMMON:
                spec = find(name, trusted, target)
                if spec is not None and spec.loader is not None:  # no namespace: that is shared
                    return spec
            return None

    def find_any(name, path=None, target=None):
        return Pins.find_spec(name, path, target) or find(name, path, target)

    sys.meta_path.insert(0, Pins)
    # pytest's own finder, which comes before all others, asks here.
    AssertionRewritingHook._find_spec = staticmethod(find_any)  # noqa: SLF001


def import_runner():
    """Import what each run of pytest loads, so that it is whole before code of the tree runs."""
    from importlib import import_module

    from _pytest.config import default_plugins

    for name in default_plugins:
        import_module("_pytest." + name)
