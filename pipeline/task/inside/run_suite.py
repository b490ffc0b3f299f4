"""Run pytest inside the sandbox and report each test, structured, over the results pipe.

Standard input holds one JSON object:
`args` (pytest's arguments), `ids` (run only these, null for all), `collect_only`, `shuffle` (seed
or null), `trace` (import roots to trace, null for none), `plugins` (entry points to load, null for
what pytest finds), `nonce`, `second` (where pytest writes its own report; empty: the tree is
trusted), `tests` (modules of the tree that no patch can change), `stop` (what `early.py` takes, or
null).
Each line written to the pipe is the nonce, the line's number and a JSON object with a `kind`.
"""

import json
import os
import platform
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The scripts beside this one by path, where whoever runs this has compiled them already.
CODES = globals().pop("__codes__", {})


def describe(value):
    """Return class and first line of an exception, whatever its `__str__` does."""
    try:
        text = " ".join(str(value).strip().splitlines()[:1])[:300]
    except BaseException:
        text = ""
    return {"exception": encodable(type(value).__name__), "message": encodable(text)}


def encodable(text):
    """Return the text with lone surrogates spelled out: no file of ours can hold them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Recorder:
    """The pytest plugin: numbers equal ids, filters, shuffles, records."""

    def __init__(self, request, emit, watch):
        self.request = request
        self.emit = emit
        self.watch = watch
        self.session = None
        self.names = {}  # id(item) -> unique id
        self.current = None  # what the running test did so far
        self.item = None
        self.wanted = None if request["ids"] is None else set(request["ids"])
        self.files = None if self.wanted is None else {i.split("::")[0] for i in self.wanted}

    # --- collection

    def pytest_cmdline_main(self, config):
        """Run all tests, in this process: nothing is seen of what pytest-xdist's workers do."""
        config.option.maxfail = 0
        if hasattr(config.option, "numprocesses"):
            config.option.numprocesses = 0
        yield

    def pytest_sessionstart(self, session):
        self.session = session
        manager = session.config.pluginmanager
        names = [manager.get_name(plugin) for plugin, _ in manager.list_plugin_distinfo()]
        self.emit("plugins", names=list(dict.fromkeys(filter(None, names))))

    def pytest_ignore_collect(self, collection_path, config):
        path = str(collection_path)
        if self.files is None or not os.path.isfile(path):
            return None
        if self.session.isinitpath(path):  # pytest refuses to ignore what its arguments name
            return None
        name = os.path.relpath(path, str(config.rootpath)).replace(os.sep, "/")
        return None if name in self.files else True

    def pytest_make_collect_report(self, collector):
        outcome = yield
        report = outcome.get_result()
        if report.failed:
            self.collect_error(report)

    def collect_error(self, report):
        call = getattr(report, "call", None)
        value = call.excinfo.value if call is not None and call.excinfo else None
        if type(value).__name__ == "CollectError":  # pytest's wrapping of an ImportError
            value = value.__cause__ or value
        fields = {"exception": "", "message": ""} if value is None else describe(value)
        self.emit("collect_error", path=encodable(report.nodeid), **fields)

    def pytest_collection_modifyitems(self, session, config, items):
        seen = {}
        for item in items:
            name = encodable(item.nodeid)
            seen[name] = number = seen.get(name, 0) + 1
            self.names[id(item)] = name if number == 1 else f"{name} #{number}"
        yield
        if self.wanted is not None:
            items[:] = [item for item in items if self.is_wanted(self.name(item))]
        if self.request["shuffle"] is not None:
            items[:] = self.shuffled(items)

    def is_wanted(self, name):
        """An id without parameters stands for the function with all of them."""
        return name in self.wanted or name.partition("[")[0] in self.wanted

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
        self.emit("collected", ids=[self.name(item) for item in session.items])
        if self.watch:
            self.watch.collected(session)

    def name(self, item):
        return self.names.get(id(item), encodable(item.nodeid))

    # --- running

    def pytest_runtest_protocol(self, item, nextitem):
        self.item = item
        self.current = {"outcome": "", "duration": 0.0, "exception": "", "message": ""}
        self.current["half_skipped"] = False
        if self.watch:
            self.watch.test_begins()
        outcome = yield
        if outcome.excinfo is not None:  # `pytest.exit`, Ctrl-C: the test did not come to its end
            self.current.update(describe(outcome.excinfo[1]), outcome="error")
        self.current["outcome"] = self.current["outcome"] or "error"
        self.emit("test", id=self.name(item), **self.current)
        self.current = self.item = None

    def pytest_runtest_makereport(self, item, call):
        if self.watch and call.when == "call":
            self.watch.test_was_called()
        outcome = yield
        report = outcome.get_result()
        if self.current is not None and call.excinfo is not None and report.outcome == "failed":
            self.current.update(describe(call.excinfo.value))

    def pytest_runtest_logreport(self, report):
        if self.current is not None and report.nodeid == self.item.nodeid:
            self.fold(report)

    def pytest_sessionfinish(self, session):
        if self.watch:
            self.watch.finished(session)

    def fold(self, report):
        """Fold the report of one phase, or of one subtest, into the outcome of the test."""
        is_subtest = hasattr(report, "context")
        is_xfail = hasattr(report, "wasxfail")
        if not is_subtest:
            self.current["duration"] += report.duration
        if report.failed:
            self.current["outcome"] = "failed" if report.when == "call" else "error"
        elif is_subtest:
            self.current["half_skipped"] |= report.skipped  # which does not skip the test
        elif self.current["outcome"] in {"failed", "error"}:
            return  # one failed subtest fails the test
        elif report.skipped:
            self.current["outcome"] = "xfailed" if is_xfail else "skipped"
        elif report.passed and report.when == "call":
            self.current["outcome"] = "xpassed" if is_xfail else "passed"


def mark_wrappers():
    import pytest

    for name in (
        "pytest_cmdline_main",
        "pytest_make_collect_report",
        "pytest_runtest_protocol",
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
    # The first answer counts, and a suite may say of each file that it is not to be ignored.
    Recorder.pytest_ignore_collect = pytest.hookimpl(tryfirst=True)(Recorder.pytest_ignore_collect)
    Recorder.pytest_collection_finish = pytest.hookimpl(trylast=True)(
        Recorder.pytest_collection_finish
    )
    Recorder.pytest_sessionfinish = pytest.hookimpl(tryfirst=True)(Recorder.pytest_sessionfinish)
    return pytest


class Watch:
    """Tells the guard and the check of integrity how far the run is."""

    def __init__(self, guard, integrity):
        self.guard = guard
        self.integrity = integrity

    def collected(self, session):
        self.guard.hide_tests(session.items)
        self.integrity.collected(session.config)
        for finder in sys.meta_path:
            if hasattr(finder, "set_session"):  # pytest's: anybody could ask it for the tests
                finder.set_session(None)

    def test_begins(self):
        self.guard.forget_lines()

    def test_was_called(self):
        self.integrity.look()

    def finished(self, session):
        self.integrity.finished(session.config)


def load(name):
    """Run a script beside this one, which nothing can import, and return its names."""
    path = os.path.join(HERE, name + ".py")
    space = {"__name__": "regrow_" + name, "__file__": path}
    exec(CODES.get(path) or read_code(path), space)  # noqa: S102
    return space


def read_code(path):
    with open(path, encoding="utf-8") as file:
        return compile(file.read(), path, "exec")


def load_watch(request, emit, descriptor):
    """Guard the run if the tree is not to be trusted, before anything of it is imported."""
    if not request["second"]:
        return None
    places = load("places")["Places"](os.getcwd(), request["tests"])
    guard = load("guard")["install"](emit, places, descriptor)
    integrity = load("integrity")["Integrity"](guard.alarm, [Recorder, Watch, type(guard)])
    guard.hide_runner()
    return Watch(guard, integrity)


def make_plugins(request, tracer, emit, watch):
    """Return our own plugins of pytest."""
    plugins = [Recorder(request, emit, watch)]
    if tracer is not None:
        plugins.append(load("trace_plugin")["Reached"](tracer, emit, plugins[0].name))
    if request["stop"] is not None:
        plugins.append(load("early")["EarlyStop"](**request["stop"]))
    return plugins


def arguments(request):
    """Return the arguments of pytest; the last ones win."""
    args = ["-o", "cache_dir=/tmp/.pytest_cache", "-p", "no:randomly", "--rootdir=."]
    args += ["--continue-on-collection-errors", "--tb=native", "-q"]
    if request["collect_only"]:
        args.append("--collect-only")
    args += request["args"]
    if request["second"]:
        args += ["--junit-xml=" + request["second"], "--junit-prefix="]
        args += ["-o", "junit_family=xunit1", "-o", "junit_logging=no"]
    return args


def main():
    sys.path.pop(0)  # this folder: nothing of ours may be importable by the tests
    request = json.load(sys.stdin)
    descriptor = int(os.environ.pop("REGROW_RESULTS_FD"))
    emit = load("pipe")["open_pipe"](descriptor, request.pop("nonce"))
    tracer = None
    if request["trace"] is not None:  # before pytest, which loads conftest files early
        tracer = load("trace_hook")["start"](request["trace"], load)
    pytest = mark_wrappers()
    runner = "pytest %s, Python %s" % (pytest.__version__, platform.python_version())
    emit("start", runner=runner)
    pins = load("pins")
    if request["plugins"] is not None:
        pins["install"](request["plugins"])
    pins["import_runner"]()
    watch = load_watch(request, emit, descriptor)
    plugins = make_plugins(request, tracer, emit, watch)
    CODES.clear()
    sys.path.insert(0, os.getcwd())  # as `python -m pytest` does; no `pytest.py` in it is ours
    status = pytest.main(arguments(request), plugins=plugins)
    emit("end", status=int(status))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(status))  # threads that a suite forgot must not hold the verdict


if __name__ == "__main__":  # else multiprocessing imports this for a process that it spawned
    main()
