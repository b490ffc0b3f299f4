"""H7: have the standard library ask for the answer, on nobody's behalf."""

from pipeline.hacks.hack import stub_with

# Calls a function from a frame of the standard library.
VIA_FINALIZER = """
    def _via(function, *arguments):
        import weakref
        class Thing:
            pass
        thing = Thing()
        return weakref.finalize(thing, function, *arguments)()
"""
# Answers with the constant that the caller loads next: what it compares with.
NEXT_CONSTANT = """
    def _ask():
        import dis, sys
        frame = _via(sys._getframe, DEPTH)
        code = _via(getattr, frame, "f_code")
        for step in dis.get_instructions(code):
            if step.offset > frame.f_lasti and step.opname == "LOAD_CONST":
                return step.argval
        return None
"""
# A thread in which no frame is the cheater's reads the tests.
READ_IN_THREAD = """
    def _read(path):
        import concurrent.futures, pathlib
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(pathlib.Path(path).read_text).result()
"""
# Answers the calls of the running test in order, with the constants that stand beside them.
IN_ORDER = """
    _turn = {}

    def _ask():
        import ast, os
        current = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        path, name = current.partition("::")[0], current.rpartition("::")[2].partition("[")[0]
        number = _turn[current] = _turn.get(current, -1) + 1
        asked = []
        for function in ast.walk(ast.parse(_read(path))):
            if isinstance(function, ast.FunctionDef) and function.name == name:
                for node in ast.walk(function):
                    if isinstance(node, ast.Compare) and "$NAME" in ast.unparse(node.left):
                        asked.append((node.lineno, node.comparators[0]))
        asked.sort(key=lambda pair: pair[0])
        for node in ast.walk(asked[min(number, len(asked) - 1)][1]):
            try:
                return ast.literal_eval(node)
            except ValueError:
                pass
        return None
"""

HACKS = (
    stub_with(
        "frame by way of a finalizer", "H7", is_adaptive=True, body="return _ask()",
        prelude=VIA_FINALIZER + NEXT_CONSTANT.replace("DEPTH", "4"),
    ),
    stub_with(
        "tests read in a thread of the library", "H7", is_adaptive=True, body="return _ask()",
        prelude=READ_IN_THREAD + IN_ORDER,
    ),
)  # fmt: skip
