"""End a run of pytest with the first outcome that settles what the run is to tell."""


class EarlyStop:
    """The pytest plugin: after a test that must pass and does not, no other one is begun."""

    def __init__(self, must_pass, excused):
        self.must_pass = frozenset(must_pass)
        self.excused = frozenset(excused)

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is None or item.nodeid not in self.must_pass:
            return
        if call.excinfo.type.__name__ not in self.excused:
            # As `--maxfail` does; to be interrupted makes pytest describe its own stack.
            item.session.shouldfail = "%s does not pass" % item.nodeid
