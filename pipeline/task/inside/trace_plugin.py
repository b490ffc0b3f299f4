"""Report what each test of a traced run reaches: the pytest plugin.

A number stands for a set of marks, bit n for mark n. What runs is charged to the test that is
running then, whatever thread or process it is in; what the set-up of a wider fixture reaches, to
every test that uses the fixture.
"""

import os

import pytest

DIGITS = bytes.maketrans(b"\0\1", b"01")


class Reached:
    """Owns the hits of the runner: what was reached since the last `take`."""

    def __init__(self, tracer, emit, name):
        self.tracer = tracer
        self.emit = emit
        self.name = name  # of an item
        self.owner = os.getpid()
        self.kept = 0  # hits that the next `take` returns too
        self.at_collection = 0
        self.by_fixture = {}  # id(fixturedef) -> hits of its set-up
        self.used = set()  # id(fixturedef) of those that the current test asked for

    def take(self):
        """Return the hits since the last call, and forget them."""
        if os.getpid() != self.owner:  # a process that a test forked may run on as pytest
            return 0
        calls, store = self.tracer.calls, self.tracer.store
        found = bytearray(calls)
        if 1 in found:
            calls[:] = [0] * len(calls)
        hits, self.kept = self.kept | to_bits(found) | to_bits(store.take(store.calls)), 0
        return hits

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session):
        self.at_collection = self.take()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.used.clear()
        self.take()
        yield
        hits = self.take()
        for key in self.used:
            hits |= self.by_fixture.get(key, 0)
        self.emit("reached", id=self.name(item), marks="%x" % hits)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function":
            yield
            return
        before = self.take()
        yield
        mine = self.take()
        self.by_fixture[id(fixturedef)] = mine
        self.kept = before | mine

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        yield
        fixtures = getattr(getattr(item, "_request", None), "_fixture_defs", {})
        self.used.update(map(id, fixtures.values()))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        """Report the marks themselves, and those that no test is charged with."""
        store = self.tracer.store
        for first, path, stretches in store.modules():
            self.emit("marked", path=path, first=first, stretches=stretches)
        at_import = to_bits(bytearray(self.tracer.imports)) | to_bits(store.take(store.imports))
        self.emit("early", at_import="%x" % at_import, at_collection="%x" % self.at_collection)


def to_bits(marks):
    """Return a set of marks as a number; most often there are none."""
    return int(marks[::-1].translate(DIGITS), 2) if 1 in marks else 0
