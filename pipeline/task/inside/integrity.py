"""Notice that pytest, or what it rests on, is no longer what it was when the run began.

A test may patch what it likes for its own time; honest ones leave the runner's functions alone.
"""

import builtins
import operator
import sys
import types

RUNNER = {"pytest", "_pytest", "pluggy", "json"}
# Looked at in each test: what makes its outcome, and what tells of it.
CRITICAL = (
    "_pytest.junitxml",
    "_pytest.outcomes",
    "_pytest.python",
    "_pytest.python_api",
    "_pytest.raises",
    "_pytest.reports",
    "_pytest.runner",
    "_pytest.skipping",
    "_pytest.unittest",
    "json.encoder",
    "pluggy",
    "unittest.case",
)
HOOKS = (
    "pytest_pyfunc_call",
    "pytest_runtest_call",
    "pytest_runtest_logreport",
    "pytest_runtest_makereport",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "pytest_sessionfinish",
)
# pytest patches these itself.
PATCHED = {"_pytest.config.Config._getini_unknown_type"}
BUILT_IN = (type, types.BuiltinFunctionType)
CALLABLE = (types.FunctionType, classmethod, staticmethod, property)


class Integrity:
    """Owns what the functions and classes of the runner were."""

    def __init__(self, alarm, ours):
        self.alarm = alarm
        self.hooks = {}
        critical, others = [], []
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in RUNNER or name == "unittest.case":
                (critical if name.startswith(CRITICAL) else others).extend(parts(name, module))
        spaces = {"regrow." + each.__name__: vars(each) for each in ours}
        critical += [Part(name, it, keys_of(it, CALLABLE)) for name, it in spaces.items()]
        critical.append(Part("builtins", vars(builtins), keys_of(vars(builtins), BUILT_IN)))
        self.critical = [part for part in critical if part.keys]
        self.others = [part for part in others if part.keys]

    def look(self):
        """Look at what makes and tells an outcome, once a test was called."""
        for part in self.critical:
            if not part.is_whole():
                self.tell(part.changed())

    def tell(self, names):
        for name in names:
            self.alarm("integrity", name)

    def collected(self, config):
        """Remember who takes part in the hooks that make outcomes."""
        self.hooks = {name: implementers(config, name) for name in HOOKS}

    def finished(self, config):
        for part in self.critical + self.others:
            self.tell(part.changed())
        for name, before in self.hooks.items():
            if implementers(config, name) != before:  # each equals only itself
                self.alarm("integrity", "hooks." + name)


class Part:
    """The functions and classes of one namespace."""

    def __init__(self, name, space, keys):
        self.name = name
        self.space = space
        self.keys = [key for key in keys if name + "." + key not in PATCHED]
        # Of one key alone it would get no tuple.
        keys = [*self.keys, *self.keys[:1]]
        self.get = operator.itemgetter(*keys) if keys else tuple
        self.values = self.get(space)
        self.codes = list(map(code_of, self.values))

    def is_whole(self):
        """Tell quickly: identical objects are not compared any further."""
        try:
            return self.get(self.space) == self.values
        except KeyError:
            return False

    def changed(self):
        """Return the names of what is another object, or has other code."""
        return [
            self.name + "." + key
            for key, value, code in zip(self.keys, self.values, self.codes)  # noqa: B905
            if self.space.get(key) is not value or code_of(value) is not code
        ]


def parts(name, module):
    """Return the parts of a module: its own, and those of the classes that it defines.

    Its own are without the classes of libraries: who freezes time puts another clock there.
    """
    space = vars(module)
    classes = [key for key in keys_of(space, type) if package_of(space[key]) in RUNNER]
    yield Part(name, space, [*keys_of(space, types.FunctionType), *classes])
    for key in keys_of(space, type):
        if space[key].__module__ == name:
            yield Part(name + "." + key, vars(space[key]), keys_of(vars(space[key]), CALLABLE))


def package_of(cls):
    return cls.__module__.partition(".")[0]


def keys_of(space, kinds):
    return [key for key, value in space.items() if isinstance(value, kinds)]


def code_of(value):
    return getattr(getattr(value, "__func__", value), "__code__", None)


def implementers(config, name):
    return list(getattr(config.hook, name).get_hookimpls())
