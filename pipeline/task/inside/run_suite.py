"""Run pytest inside the sandbox and report each test, structured, over the results pipe.

Standard input holds one JSON object:
`args` (pytest's arguments), `ids` (run only these, null for all), `collect_only`, `shuffle` (seed
or null), `trace` (import roots to trace, null for none).
Each line written to the pipe is one JSON object with a `kind`.
"""

import json
import os
import random
import sys

sys.path.pop(0)  # this folder: nothing of ours may be importable by the tests
sys.path.insert(0, os.getcwd())  # as `python -m pytest` does

PIPE = os.fdopen(
    int(os.environ.pop("REGROW_RESULTS_FD")), "w", encoding="utf-8", errors="backslashreplace"
)
os.set_inheritable(PIPE.fileno(), False)


def emit(kind, **fields):
    PIPE.write(json.dumps(dict(fields, kind=kind)) + "\n")


def describe(excinfo):
    """Return class and first line of an exception, whatever its `__str__` does."""
    try:
        text = str(excinfo.value).strip().split("\n")[0][:300]
    except BaseException:
        text = ""
    return {"exception": excinfo.typename, "message": text}


class Recorder:
    """The pytest plugin: numbers equal ids, filters, shuffles, records."""

    def __init__(self, request, hook):
        self.request = request
        self.hook = hook
        self.names = {}  # id(item) -> unique id
        self.current = None
        self.wanted = None if request["ids"] is None else set(request["ids"])
        self.files = None if self.wanted is None else {i.split("::")[0] for i in self.wanted}
        self.by_fixture = {}  # id(fixturedef) -> functions that its set-up entered

    # --- collection

    def pytest_ignore_collect(self, collection_path, config):
        if self.files is None or not os.path.isfile(str(collection_path)):
            return None
        root = str(config.rootpath)
        return (
            None
            if os.path.relpath(str(collection_path), root).replace(os.sep, "/") in self.files
            else True
        )

    def pytest_make_collect_report(self, collector):
        if self.hook:
            self.hook.take()
        outcome = yield
        if self.hook:
            self.hook.collected(self.hook.take())
        report = outcome.get_result()
        if report.failed:
            self.collect_error(report)

    def collect_error(self, report):
        call = getattr(report, "call", None)
        fields = (
            describe(call.excinfo)
            if call is not None and call.excinfo
            else {"exception": "", "message": ""}
        )
        emit("collect_error", path=report.nodeid, text=str(report.longrepr)[-2000:], **fields)

    def pytest_collection_modifyitems(self, session, config, items):
        seen = {}
        for item in items:
            seen[item.nodeid] = number = seen.get(item.nodeid, 0) + 1
            self.names[id(item)] = item.nodeid if number == 1 else f"{item.nodeid} #{number}"
        yield
        if self.wanted is not None:
            items[:] = [item for item in items if self.name(item) in self.wanted]
        if self.request["shuffle"] is not None:
            items[:] = self.shuffled(items)

    def shuffled(self, items):
        """Return the items with modules, then the tests of each, in a seeded order."""
        order = random.Random(self.request["shuffle"])  # noqa: S311  an order, no secret
        modules = {}
        for item in items:
            modules.setdefault(item.nodeid.split("::")[0], []).append(item)
        names = list(modules)
        order.shuffle(names)
        for name in names:
            order.shuffle(modules[name])
        return [item for name in names for item in modules[name]]

    def pytest_collection_finish(self, session):
        emit("collected", ids=[self.name(item) for item in session.items])

    def name(self, item):
        return self.names.get(id(item), item.nodeid)

    # --- running

    def pytest_runtest_protocol(self, item, nextitem):
        self.current = {"outcome": "passed", "duration": 0.0, "exception": "", "message": ""}
        if self.hook:
            self.hook.take()
        yield
        hits = self.hook.take() if self.hook else []
        if self.hook:
            hits = sorted(set(hits).union(*self.fixture_hits(item)))
            self.hook.tested(self.name(item), hits)
        emit("test", id=self.name(item), **self.current)
        self.current = None

    def fixture_hits(self, item):
        info = getattr(item, "_fixtureinfo", None)
        for definitions in getattr(info, "name2fixturedefs", {}).values():
            for definition in definitions:
                yield self.by_fixture.get(id(definition), ())

    def pytest_fixture_setup(self, fixturedef, request):
        if not self.hook or fixturedef.scope == "function":
            yield
            return
        before = self.hook.take()
        yield
        mine = self.hook.take()
        self.by_fixture[id(fixturedef)] = mine
        self.hook.put(before)
        self.hook.put(mine)

    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        if self.current is None:
            return
        self.current["duration"] += report.duration
        if call.excinfo is not None and report.outcome == "failed":
            self.current.update(describe(call.excinfo))
        self.fold(report)

    def pytest_runtest_logreport(self, report):
        # Subtests report themselves beside their test: one failed subtest fails the test.
        if self.current is not None and hasattr(report, "context") and report.failed:
            self.current["outcome"] = "failed"

    def fold(self, report):
        """Fold the report of one phase into the outcome of the test."""
        xfail = hasattr(report, "wasxfail")
        if report.failed:
            self.current["outcome"] = "failed" if report.when == "call" else "error"
        elif report.skipped:
            self.current["outcome"] = "xfailed" if xfail else "skipped"
        elif report.when == "call" and xfail:
            self.current["outcome"] = "xpassed"


def mark_wrappers():
    import pytest

    for name in (
        "pytest_make_collect_report",
        "pytest_runtest_protocol",
        "pytest_fixture_setup",
        "pytest_runtest_makereport",
    ):
        setattr(
            Recorder,
            name,
            pytest.hookimpl(hookwrapper=True, tryfirst=True)(getattr(Recorder, name)),
        )
    Recorder.pytest_collection_modifyitems = pytest.hookimpl(hookwrapper=True, tryfirst=True)(
        Recorder.pytest_collection_modifyitems
    )
    Recorder.pytest_collection_finish = pytest.hookimpl(trylast=True)(
        Recorder.pytest_collection_finish
    )
    return pytest


def load_hook(roots):
    if roots is None:
        return None
    space = {"__name__": "regrow_trace_hook"}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trace_hook.py")
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), space)  # noqa: S102  imported without a path
    return space["install"](roots, emit)


def main():
    request = json.load(sys.stdin)
    hook = load_hook(request["trace"])  # before pytest, which loads conftest files early
    pytest = mark_wrappers()
    args = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "--continue-on-collection-errors",
        "--tb=native",
        "-q",
    ]
    if request["collect_only"]:
        args.append("--collect-only")
    status = pytest.main(args + request["args"], plugins=[Recorder(request, hook)])
    if hook:
        hook.finish()
    emit("end", status=int(status))
    PIPE.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(status))  # threads that a suite forgot must not hold the verdict


main()
