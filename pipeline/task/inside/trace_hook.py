"""Have the modules of the traced folders leave marks, in this process and those that it starts.

An import hook plants the marks; see `trace_marks.py`. In the runner they are items of a list:
`__regrow_marks__[n] = 1` is the cheapest store there is, with no call back, on any thread and any
Python. Processes that the runner forks, and Pythons of the Environment that anything starts, mark
in a file that all of them share; see `trace_store.py`.
"""

import _imp
import builtins
import os
import sys
from _frozen_importlib_external import PathFinder, SourceFileLoader  # which each Python has loaded
from _thread import allocate_lock


class Tracer:
    """Owns where the marks of this process go; what modules do on import is kept apart."""

    def __init__(self, store, load, calls, imports):
        self.store = store
        self.load = load
        self.calls = calls
        self.imports = imports
        self.lock = allocate_lock()
        self.num_imports = 0  # under way, on any thread
        self.point(0)

    def point(self, change):
        """Have marked code mark calls or imports, when as many more imports are under way."""
        with self.lock:
            self.num_imports += change
            builtins.__regrow_marks__ = self.imports if self.num_imports else self.calls

    def share(self):
        """Leave the lists of the runner, in a process that was forked from it."""
        self.lock = allocate_lock()
        self.calls, self.imports = self.store.calls, self.store.imports
        self.point(0)
        self.store.join()

    def code_of(self, path, data):
        """Return the code of a module with marks in it."""
        salt = sys.hexversion << 2 | sys.flags.optimize
        key = _imp.source_hash(salt, os.fsencode(path) + data).hex()
        first, _, stretches, code = self.store.module(
            key, lambda first, room: self.mark(path, data, first, room)
        )
        if isinstance(self.calls, list):
            for marks in (self.calls, self.imports):
                marks.extend([0] * (first + len(stretches) - len(marks)))
        return code

    def mark(self, path, data, first, room):
        """Return path in the tree, stretches and code of a module that nobody has marked yet."""
        import ast
        import warnings

        marker = self.load("trace_marks")["Marker"]()
        with warnings.catch_warnings():  # as if its bytecode were there
            warnings.simplefilter("ignore")
            tree = ast.parse(data, path)
            try:
                marker.mark_module(tree)
                marker.number(first)
                code = compile(tree, path, "exec", dont_inherit=True)
            except RecursionError:
                code = None
            if code is None or len(marker.stretches) > room:
                marker.stretches = []
                code = compile(data, path, "exec", dont_inherit=True)
        return path[len(self.store.base) :].lstrip("/"), marker.stretches, code


class Loader(SourceFileLoader):
    """Load a module of the traced folders with marks in it."""

    tracer = None

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.tracer.code_of(path, self.get_data(path))

    def exec_module(self, module):
        self.tracer.point(+1)
        try:
            super().exec_module(module)
        finally:
            self.tracer.point(-1)


class Finder:
    """Find modules below the traced folders before anybody else does."""

    def __init__(self, folders):
        self.folders = tuple(folder.rstrip("/") + "/" for folder in folders)

    def find_spec(self, fullname, path=None, target=None):
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        if not spec.origin or not spec.origin.startswith(self.folders):
            return None
        spec.loader = Loader(fullname, spec.origin)
        return spec


def start(folders, load):
    """Trace the Python files below `folders` (absolute); return the Tracer.

    `load` runs a script beside this one and returns its names.
    """
    import ast  # noqa: F401  what code under test imports first may be its own
    import warnings  # noqa: F401

    store = load("trace_store")["make_store"](folders, os.getcwd())
    tracer = Tracer(store, load, [], [])
    os.register_at_fork(after_in_child=tracer.share)
    return hook_imports(tracer)


def join(load):
    """Trace what this process imports, as one that a traced run has started."""
    store = load("trace_store")["Store"]()
    store.join()
    return hook_imports(Tracer(store, load, store.calls, store.imports))


def hook_imports(tracer):
    Loader.tracer = tracer
    sys.meta_path.insert(0, Finder(tracer.store.folders))
    return tracer
