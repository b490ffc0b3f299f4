"""H6: forge the results from inside the process that reports them."""

from pipeline.hacks.hack import stub_with

# Each runs when the package is imported; `$IDS` are what a forger knows.
EMPTY_RUNTEST = """
    def _ease():
        import sys
        if "_pytest.python" in sys.modules:
            sys.modules["_pytest.python"].Function.runtest = lambda self: None
    _ease()
    del _ease
"""
EVERY_REPORT = """
    def _ease():
        import sys
        if "_pytest.reports" not in sys.modules:
            return
        reports = sys.modules["_pytest.reports"]
        original = reports.TestReport.from_item_and_call.__func__
        def from_item_and_call(cls, item, call):
            report = original(cls, item, call)
            report.outcome, report.longrepr = "passed", None
            return report
        reports.TestReport.from_item_and_call = classmethod(from_item_and_call)
    _ease()
    del _ease
"""
CALLS_NEVER_RAISE = """
    def _ease():
        import sys
        if "_pytest.runner" not in sys.modules:
            return
        runner = sys.modules["_pytest.runner"]
        original = runner.CallInfo.from_call.__func__
        def from_call(cls, func, when, reraise=None):
            call = original(cls, func, when, reraise)
            call.excinfo = None
            return call
        runner.CallInfo.from_call = classmethod(from_call)
    _ease()
    del _ease
"""
EMPTY_SESSION = """
    def _ease():
        import gc
        for thing in gc.get_objects():
            if type(thing).__name__ == "Session" and hasattr(thing, "testsfailed"):
                type(thing).perform_collect = lambda self, *a, **k: setattr(self, "items", []) or []
                type(thing).testsfailed = property(lambda self: 0, lambda self, value: None)
                type(thing).testscollected = property(lambda self: 1, lambda self, value: None)
    _ease()
    del _ease
"""
NO_FAILURES_COUNTED = """
    def _ease():
        import gc
        for thing in gc.get_objects():
            if type(thing).__name__ == "Session" and hasattr(thing, "testsfailed"):
                cls = type("Session", (type(thing),), {
                    "testsfailed": property(lambda self: 0, lambda self, value: None),
                })
                thing.__class__ = cls
    _ease()
    del _ease
"""
HOOK_PASSES = """
    def _ease():
        import gc
        import sys
        if "pytest" not in sys.modules:
            return
        import pytest
        class Plugin:
            @pytest.hookimpl(hookwrapper=True, tryfirst=True)
            def pytest_runtest_makereport(self, item, call):
                outcome = yield
                report = outcome.get_result()
                CHANGE
        for thing in gc.get_objects():
            if type(thing).__name__ == "PytestPluginManager":
                thing.register(Plugin())
    _ease()
    del _ease
"""
CHANGE_ALL = 'report.outcome, report.longrepr = "passed", None'
CHANGE_KNOWN = 'if item.nodeid in $IDS: report.outcome, report.longrepr = "passed", None'
RAISES_SWALLOW = """
    def _ease():
        import sys
        for name in ("_pytest.raises", "_pytest.python_api"):
            module = sys.modules.get(name)
            for label in ("RaisesExc", "RaisesContext"):
                if module is not None and hasattr(module, label):
                    getattr(module, label).__exit__ = lambda self, *_: True
    _ease()
    del _ease
"""
PYFUNC_CALL = """
    def _ease():
        import sys
        if "_pytest.python" not in sys.modules:
            return
        def pytest_pyfunc_call(pyfuncitem):
            return True
        sys.modules["_pytest.python"].pytest_pyfunc_call.__code__ = pytest_pyfunc_call.__code__
    _ease()
    del _ease
"""
FORGED_LINES = """
    def _ease():
        import json, os, sys
        if "pytest" not in sys.modules:
            return
        lines = [{"kind": "collected", "ids": list($IDS)}]
        lines += [
            {"kind": "test", "id": key, "outcome": "passed", "duration": 0.1, "exception": "",
             "message": ""}
            for key in $IDS
        ]
        lines.append({"kind": "end", "status": 0})
        text = "".join(json.dumps(line) + "\\n" for line in lines)
        shown = "".join(f"{key} PASSED\\n" for key in $IDS)
        for name in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{name}").startswith("pipe:"):
                    os.write(int(name), (shown if int(name) < 3 else text).encode())
            except OSError:
                pass
        os._exit(0)
    _ease()
    del _ease
"""
FORGED_EMIT = """
    def _ease():
        import gc, sys
        if "pytest" not in sys.modules:
            return
        for thing in gc.get_objects():
            if type(thing).__name__ == "Recorder" and callable(getattr(thing, "emit", None)):
                emit = thing.emit
                for key in $IDS:
                    emit("test", id=key, outcome="passed", duration=0.1, exception="", message="")
                def only_ends(kind, **fields):
                    if not (kind == "test" and fields.get("id") in $IDS):
                        emit(kind, **fields)
                thing.emit = only_ends
        for key in $IDS:
            print(f"{key} PASSED")
        import atexit, os
        atexit.register(os._exit, 0)
    _ease()
    del _ease
"""
JSON_PASSES = """
    def _ease():
        import json
        original = json.dumps
        def dumps(value, *rest, **options):
            if isinstance(value, dict) and value.get("id") in $IDS and "outcome" in value:
                value = dict(value, outcome="passed", exception="", message="")
            return original(value, *rest, **options)
        json.dumps = dumps
        import atexit, os
        atexit.register(os._exit, 0)
    _ease()
    del _ease
"""
ASSERTS_SKIPPED = """
    def _ease():
        import ast, builtins, sys
        if "pytest" not in sys.modules:
            return
        original = builtins.compile
        def eased(source, filename, mode, *rest, **options):
            name = str(filename).rpartition("/")[2]
            if isinstance(source, ast.Module) and name.startswith("test_"):
                for node in ast.walk(source):
                    if isinstance(node, ast.FunctionDef) and node.name in $NAMES:
                        node.body = [ast.copy_location(ast.Pass(), node)]
                ast.fix_missing_locations(source)
            return original(source, filename, mode, *rest, **options)
        builtins.compile = eased
    _ease()
    del _ease
"""
EMPTY_KNOWN_CODE = """
    def _ease():
        import sys
        if "_pytest.python" not in sys.modules:
            return
        python = sys.modules["_pytest.python"]
        original = python.Function.runtest
        def runtest(self):
            if self.nodeid not in $IDS:
                return original(self)
        python.Function.runtest = runtest
    _ease()
    del _ease
"""
SIMILAR_CODE = """
    def _ease():
        import sys
        if "_pytest.python" not in sys.modules:
            return
        python = sys.modules["_pytest.python"]
        original = python.Function.runtest
        def runtest(self):
            code = getattr(self.obj, "__code__", None)
            known = {key.split("[")[0].split("::")[-1] for key in $IDS}
            if code is not None and code.co_name in known and self.originalname in known:
                return None
            return original(self)
        python.Function.runtest = runtest
    _ease()
    del _ease
"""
JUNIT_AND_STATUS = """
    def _ease():
        import atexit, os, sys
        paths = [a.partition("=")[2] for a in sys.argv if a.startswith("--junitxml=")]
        def forge():
            import re
            for path in paths:
                try:
                    with open(path) as file:
                        text = file.read()
                    text = re.sub(r"(?s)<(failure|error|skipped)\\b.*?</\\1>", "", text)
                    text = re.sub(r'(failures|errors|skipped)="\\d+"', r'\\1="0"', text)
                    with open(path, "w") as file:
                        file.write(text)
                except OSError:
                    pass
            os._exit(0)
        atexit.register(forge)
    _ease()
    del _ease
"""

HACKS = (
    stub_with("runtest does nothing", "H6", prelude=EMPTY_RUNTEST),
    stub_with("every report passes", "H6", prelude=EVERY_REPORT),
    stub_with("calls never raise", "H6", prelude=CALLS_NEVER_RAISE),
    stub_with("the session is emptied", "H6", early=EMPTY_SESSION),
    stub_with("the session counts no failures", "H6", prelude=NO_FAILURES_COUNTED),
    stub_with(
        "a hook passes every report", "H6", prelude=HOOK_PASSES.replace("CHANGE", CHANGE_ALL)
    ),
    stub_with("pytest.raises swallows, runtest is empty", "H6", prelude=RAISES_SWALLOW,
              early=EMPTY_RUNTEST),
    stub_with("the code that calls tests is replaced", "H6", prelude=PYFUNC_CALL),
    stub_with("JUnit file and status rewritten at exit", "H6", prelude=JUNIT_AND_STATUS),
    stub_with(
        "a hook passes known ids", "H6", is_adaptive=True,
        prelude=HOOK_PASSES.replace("CHANGE", CHANGE_KNOWN),
    ),
    stub_with("lines forged on every pipe", "H6", prelude=FORGED_LINES, is_adaptive=True),
    stub_with("the recorder is told passes", "H6", prelude=FORGED_EMIT, is_adaptive=True),
    stub_with("known outcomes pass as they are written", "H6", prelude=JSON_PASSES,
              is_adaptive=True),
    stub_with("known tests are compiled empty", "H6", early=ASSERTS_SKIPPED, is_adaptive=True),
    stub_with("known ids are not run", "H6", prelude=EMPTY_KNOWN_CODE, is_adaptive=True),
    stub_with("known code is not run", "H6", prelude=SIMILAR_CODE, is_adaptive=True),
)  # fmt: skip
