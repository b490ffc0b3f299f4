"""Mark which functions of the traced folders run, at the cost of one byte store per entry.

An import hook puts `__regrow_marks__[i] = 1` after the docstring of every function, on the line of
its first statement, so that line numbers and tracebacks stay. The marks are a bytearray: no call
back, any thread, any Python. Import time, collection time and each test are told apart.
"""

import ast
import builtins
import importlib.machinery
import sys

MARKS = bytearray()


class Hook:
    """Owns the marks: what was entered since the last `take`."""

    def __init__(self, emit):
        self.emit = emit
        self.num_functions = 0
        self.at_import = set()
        self.at_collection = set()

    def add_module(self, path, names):
        """Reserve one mark a function; return the number of the first."""
        first = self.num_functions
        self.num_functions += len(names)
        MARKS.extend(bytes(len(names)))
        self.emit("functions", path=path, first=first, names=names)
        return first

    def take(self):
        """Return the functions entered since the last call, and forget them."""
        hits = []
        at = MARKS.find(1)
        while at >= 0:
            hits.append(at)
            MARKS[at] = 0
            at = MARKS.find(1, at + 1)
        return hits

    def put(self, hits):
        for at in hits:
            MARKS[at] = 1

    def collected(self, hits):
        self.at_collection.update(hits)

    def tested(self, name, hits):
        self.emit("reached", id=name, functions=hits)

    def finish(self):
        self.emit(
            "import_time", functions=sorted(self.at_import), collection=sorted(self.at_collection)
        )


class Marker(ast.NodeTransformer):
    """Number the functions of one module in source order and mark their entry."""

    def __init__(self):
        self.names = []
        self.nodes = []
        self.scope = []

    def visit_ClassDef(self, node):
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()
        return node

    def visit_FunctionDef(self, node):
        self.names.append([".".join([*self.scope, node.name]), node.lineno])
        self.nodes.append(node)
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  named by `ast`

    def insert(self, first):
        for offset, node in enumerate(self.nodes):
            body = node.body
            has_docstring = isinstance(body[0], ast.Expr) and isinstance(
                getattr(body[0].value, "value", None), str
            )
            after = 1 if has_docstring else 0
            anchor = body[min(after, len(body) - 1)]
            mark = ast.parse("__regrow_marks__[%d] = 1" % (first + offset)).body[0]
            for part in ast.walk(mark):
                if hasattr(part, "lineno"):
                    part.lineno = part.end_lineno = anchor.lineno
                    part.col_offset = part.end_col_offset = anchor.col_offset
            body.insert(after, mark)


class Loader(importlib.machinery.SourceFileLoader):
    """Load a module of the traced folders with marks in it, and keep its import time apart."""

    hook = None
    base = ""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data, path, **options):
        tree = ast.parse(data, path)
        marker = Marker()
        marker.visit(tree)
        relative = path[len(self.base) :].lstrip("/")
        marker.insert(self.hook.add_module(relative, marker.names))
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module):
        before = self.hook.take()
        try:
            super().exec_module(module)
        finally:
            self.hook.at_import.update(self.hook.take())
            self.hook.put(before)


class Finder:
    """Find modules below the traced folders before anybody else does."""

    def __init__(self, folders):
        self.folders = tuple(folder.rstrip("/") + "/" for folder in folders)

    def find_spec(self, fullname, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        if not spec.origin or not spec.origin.startswith(self.folders):
            return None
        spec.loader = Loader(fullname, spec.origin)
        return spec


def install(folders, emit):
    """Start to trace the Python files below `folders` (absolute); return the Hook."""
    import os

    builtins.__regrow_marks__ = MARKS
    Loader.hook = Hook(emit)
    Loader.base = os.getcwd()
    sys.meta_path.insert(0, Finder(folders))
    return Loader.hook
