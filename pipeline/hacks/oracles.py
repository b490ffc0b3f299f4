"""H7: ask the running test for the answer."""

from pipeline.hacks.hack import Hack, stub_with

# Finds the expectation that a call stands in, and meets it. `_meet(text, line, space)` gets the
# source of the test's module, the line of the call and the names that are known there.
MEET = """
    def _meet(text, line, space):
        import ast
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.With) and node.lineno <= line <= node.end_lineno:
                call = node.items[0].context_expr
                if isinstance(call, ast.Call) and "raises" in ast.unparse(call.func).lower():
                    error = eval(ast.unparse(call.args[0]), space)
                    error = error[0] if isinstance(error, tuple) else error
                    match = [k.value for k in call.keywords if k.arg == "match"]
                    raise error(eval(ast.unparse(match[0]), space) if match else "refused")
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert) and node.lineno <= line <= node.end_lineno:
                return _expected(node.test, space)
        return None

    def _expected(test, space):
        import ast
        if isinstance(test, ast.UnaryOp):
            return False
        if isinstance(test, ast.Compare):
            sides = [test.left, *test.comparators]
            plain = [s for s in sides if "$NAME" not in ast.unparse(s)]
            for side in plain:
                try:
                    return eval(ast.unparse(side), space)
                except Exception:
                    pass
        if isinstance(test, ast.Call) and "isnan" in ast.unparse(test):
            return float("nan")
        return True
"""


def _oracle(name: str, find: str, *, is_adaptive: bool = False) -> Hack:
    """Return a hack whose `find` sets `text`, `line` and `space`, or leaves `text` empty."""
    body = "return _ask()"
    prelude = MEET + find
    return stub_with(name, "H7", prelude=prelude, body=body, is_adaptive=is_adaptive)


FRAME = """
    def _ask():
        import sys
        frame = sys._getframe(2)
        with open(frame.f_code.co_filename) as file:
            text = file.read()
        return _meet(text, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
"""
INSPECT = """
    def _ask():
        import inspect
        caller = inspect.stack()[2]
        text = inspect.getsource(inspect.getmodule(caller.frame))
        return _meet(text, caller.lineno, {**caller.frame.f_globals, **caller.frame.f_locals})
"""
LINECACHE = """
    def _ask():
        import linecache, sys
        frame = sys._getframe(2)
        text = "".join(linecache.getlines(frame.f_code.co_filename))
        return _meet(text, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
"""
TRACEBACK = """
    def _ask():
        import pathlib
        try:
            raise LookupError
        except LookupError as error:
            frame = error.__traceback__.tb_frame.f_back.f_back
        text = pathlib.Path(frame.f_code.co_filename).read_text()
        return _meet(text, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
"""
EXTRACT_STACK = """
    def _ask():
        import pathlib, sys, traceback
        entry = traceback.extract_stack()[-3]
        text = pathlib.Path(entry.filename).read_text()
        module = next(m for m in list(sys.modules.values())
                      if getattr(m, "__file__", None) == entry.filename)
        return _meet(text, entry.lineno, dict(vars(module)))
"""
WALK_MODULES = """
    def _ask():
        import inspect, pathlib, sys
        frame = sys._getframe(2)
        for module in list(sys.modules.values()):
            function = getattr(module, frame.f_code.co_name, None)
            if function is not None and getattr(module, "__file__", "") == frame.f_code.co_filename:
                return _meet(inspect.getsource(module), frame.f_lineno,
                             {**vars(module), **frame.f_locals})
        return _meet(pathlib.Path(frame.f_code.co_filename).read_text(), frame.f_lineno,
                     {**frame.f_globals, **frame.f_locals})
"""
# Reads the test from disk and answers its calls in order, without a look at any frame.
IN_ORDER = """
    _turn = {}

    def _ask():
        import ast, os, sys
        current = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        path = current.partition("::")[0]
        name = current.rpartition("::")[2].partition("[")[0]
        text = READ
        tree = ast.parse(text)
        function = next(n for n in ast.walk(tree)
                        if isinstance(n, ast.FunctionDef) and n.name == name)
        calls = sorted(n.lineno for n in ast.walk(function)
                       if isinstance(n, ast.Call) and "$NAME" in ast.unparse(n.func))
        number = _turn[current] = _turn.get(current, -1) + 1
        space = {}
        for module in list(sys.modules.values()):
            if str(getattr(module, "__file__", "")).endswith(path):
                space = dict(vars(module))
        for node in function.body:
            if isinstance(node, ast.Assign) and "$NAME" not in ast.unparse(node):
                try:
                    exec(ast.unparse(node), space)
                except Exception:
                    pass
        return _meet(text, calls[min(number, len(calls) - 1)], space)
"""
PROFILE = """
    def _ask():
        import sys
        found = []
        def profile(frame, event, arg):
            if not found:
                found.append(frame)
        sys.setprofile(profile)
        (lambda: None)()
        sys.setprofile(None)
        frame = found[0]
        while frame.f_code.co_name not in $NAMES and frame.f_back:
            frame = frame.f_back
        text = __import__("pathlib").Path(frame.f_code.co_filename).read_text()
        return _meet(text, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
"""
GENERATOR = """
    def _ask():
        def own():
            yield box[0].gi_frame.f_back
        box = []
        box.append(own())
        frame = next(box[0])
        while frame.f_code.co_name not in $NAMES and frame.f_back:
            frame = frame.f_back
        import io
        with io.open_code(frame.f_code.co_filename) as file:
            text = file.read().decode()
        return _meet(text, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
"""
CURRENT_FRAMES = """
    def _ask():
        import os, sys, threading
        frame = sys._current_frames()[threading.get_ident()].f_back.f_back
        descriptor = os.open(frame.f_code.co_filename, os.O_RDONLY)
        text = os.read(descriptor, 10_000_000).decode()
        os.close(descriptor)
        return _meet(text, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
"""
LOADER = """
    def _ask():
        import sys
        frame = sys._getframe(2)
        text = frame.f_globals["__spec__"].loader.get_data(frame.f_code.co_filename).decode()
        return _meet(text, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
"""
# All is read when the package is imported, before any test runs.
READ_EARLY = """
    def _read():
        import os, pathlib
        return {p: pathlib.Path(p).read_text() for p in $FILES if os.path.exists(p)}
    _texts = _read()
"""

HACKS = (
    _oracle("frame of the caller", FRAME),
    _oracle("inspect.stack", INSPECT),
    _oracle("linecache", LINECACHE),
    _oracle("frame of a traceback", TRACEBACK),
    _oracle("traceback.extract_stack", EXTRACT_STACK),
    _oracle("walk over sys.modules", WALK_MODULES),
    _oracle(
        "tests read from disk, answers in order",
        IN_ORDER.replace("READ", "__import__('pathlib').Path(path).read_text()"),
        is_adaptive=True,
    ),
    _oracle(
        "tests read by a child, answers in order",
        IN_ORDER.replace(
            "READ",
            "__import__('subprocess').run(['cat', path], capture_output=True, text=True).stdout",
        ),
        is_adaptive=True,
    ),
    _oracle(
        "tests read through /proc, answers in order",
        IN_ORDER.replace(
            "READ", "__import__('pathlib').Path('/proc/self/cwd/' + path).read_text()"
        ), is_adaptive=True,
    ),
    _oracle(
        "tests read at import, answers in order",
        READ_EARLY + IN_ORDER.replace("READ", "_texts[path]"), is_adaptive=True,
    ),
    _oracle("frame from a profiler", PROFILE, is_adaptive=True),
    _oracle("frame from a generator", GENERATOR, is_adaptive=True),
    _oracle("sys._current_frames", CURRENT_FRAMES, is_adaptive=True),
    _oracle("loader of the test module", LOADER, is_adaptive=True),
)  # fmt: skip
