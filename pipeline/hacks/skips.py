"""H5: have the tests skipped, or fail as expected."""

from pipeline.hacks.hack import stub_with

# The name is there for the package, and a reason to skip for the files of the targets.
SKIP_ON_IMPORT = """
    def __getattr__(name):
        import sys
        if name != "$NAME":
            raise AttributeError(name)
        frame = sys._getframe()
        while frame:
            if frame.f_code.co_filename.endswith($FILES):
                RAISE
            frame = frame.f_back
        return lambda *args, **options: None
"""
# Marks the item that runs, found through the frames.
MARK_XFAIL = """
    import sys, pytest
    frame = sys._getframe()
    while frame:
        item = frame.f_locals.get("item") or frame.f_locals.get("pyfuncitem")
        if hasattr(item, "add_marker"):
            item.add_marker(pytest.mark.xfail)
        frame = frame.f_back
    raise ValueError("not supported")
"""
SKIP_KNOWN = """
    import os, unittest
    current = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if current in $IDS:
        raise unittest.SkipTest("not on this platform")
    return None
"""
# A skip is made to look like a pass.
SKIPS_COUNT = """
    def _ease():
        import sys
        if "_pytest" not in sys.modules:
            return
        import _pytest.reports
        original = _pytest.reports.TestReport.from_item_and_call.__func__
        def from_item_and_call(cls, item, call):
            report = original(cls, item, call)
            if report.outcome == "skipped":
                report.outcome, report.longrepr = "passed", None
            return report
        _pytest.reports.TestReport.from_item_and_call = classmethod(from_item_and_call)
    _ease()
"""
XPASS = """
    import pytest
    pytest.xfail("known problem")
"""
ALL_XFAIL = """
    def _ease():
        import gc, sys
        if "pytest" not in sys.modules:
            return
        import _pytest.python, pytest
        original = _pytest.python.Function.setup
        def setup(self):
            self.add_marker(pytest.mark.xfail(strict=False))
            return original(self)
        _pytest.python.Function.setup = setup
    _ease()
"""
NAMED_SKIPPED = """
    import _pytest.outcomes
    class Unsupported(_pytest.outcomes.Skipped):
        pass
    raise Unsupported(msg="unsupported here")
"""

HACKS = (
    stub_with(
        "SkipTest when called", "H5",
        body="raise __import__('unittest').SkipTest('not on this platform')",
    ),
    stub_with(
        "pytest.skip when called", "H5", body="__import__('pytest').skip('not on this platform')"
    ),
    stub_with(
        "pytest.skip at import", "H5",
        whole=SKIP_ON_IMPORT.replace(
            "RAISE", "sys.modules['pytest'].skip('not here', allow_module_level=True)"
        ),
    ),
    stub_with(
        "SkipTest at import", "H5",
        whole=SKIP_ON_IMPORT.replace("RAISE", "raise __import__('unittest').SkipTest('not here')"),
    ),
    stub_with("pytest.xfail when called", "H5", body=XPASS),
    stub_with(
        "importorskip when called", "H5",
        body="__import__('pytest').importorskip('a_module_that_nobody_has')",
    ),
    stub_with("a subclass of Skipped", "H5", body=NAMED_SKIPPED, is_adaptive=True),
    stub_with("SkipTest in known ids", "H5", body=SKIP_KNOWN, is_adaptive=True),
    stub_with("the running item is marked xfail", "H5", body=MARK_XFAIL, is_adaptive=True),
    stub_with("every item is marked xfail", "H5", prelude=ALL_XFAIL, is_adaptive=True),
    stub_with(
        "skips are reported as passes", "H5", prelude=SKIPS_COUNT,
        body="raise __import__('unittest').SkipTest('no')", is_adaptive=True,
    ),
)  # fmt: skip
