"""Raise an alarm when code of the tree does what cheats do, before it is done.

An audit hook sees what the interpreter announces. Who does it is told by the frames: only files of
the tree that a solver's patch can change count, and only when they do it themselves. What the
standard library or a package does on their behalf (named tuples, loggers, warnings) does not, but
for the few modules that such code is looked through.
"""

import os
import sys
import types
from _thread import get_ident

STANDARD = os.path.dirname(types.__file__)
INSPECT = {os.path.join(STANDARD, "inspect.py")}
DISASSEMBLER = {os.path.join(STANDARD, "dis.py")}
TRACEBACK = os.path.join(STANDARD, "traceback.py")
LOGGING = os.path.join(STANDARD, "logging", "__init__.py")
WALK = INSPECT | {
    TRACEBACK,
    os.path.join(STANDARD, "asyncio", "format_helpers.py"),
    (LOGGING, "currentframe"),
    (LOGGING, "<lambda>"),
}
# Functions that take a frame from what they are given and hand it out.
HAND_OUT = {
    (os.path.join(STANDARD, "inspect.py"), "getinnerframes"),
    (TRACEBACK, "walk_tb"),
    (TRACEBACK, "_walk_tb_with_full_positions"),
    (os.path.join(STANDARD, "bdb.py"), "get_stack"),
    (os.path.join(STANDARD, "types.py"), "gi_frame"),
    (os.path.join(STANDARD, "asyncio", "base_tasks.py"), "_task_get_stack"),
}
START = {os.path.join(STANDARD, name) for name in ("subprocess.py", "os.py")} | {"<frozen os>"}
TRACE = {os.path.join(STANDARD, "threading.py")}
FOREIGN = {os.path.join(STANDARD, "ctypes", name) for name in ("__init__.py", "util.py")}

# Event: the alarm, and the files that are looked through.
DIRECT = {
    "sys._getframe": ("frames", WALK),
    "sys._getframemodulename": ("frames", WALK),
    "sys._current_frames": ("frames", WALK),
    "sys._current_exceptions": ("frames", WALK),
    "gc.get_objects": ("gc", frozenset()),
    "gc.get_referrers": ("gc", frozenset()),
    "gc.get_referents": ("gc", frozenset()),
    "code.__new__": ("code", frozenset()),
    "marshal.loads": ("code", frozenset()),
    "sys.settrace": ("tracing", TRACE),
    "sys.setprofile": ("tracing", TRACE),
    "sys.addaudithook": ("tracing", frozenset()),
    "sys.monitoring.register_callback": ("tracing", frozenset()),
    "os.fork": ("process", START),
    "os.forkpty": ("process", START),
    "os.exec": ("process", START),
    "os.posix_spawn": ("process", START),
    "os.spawn": ("process", START),
    "os.system": ("process", START),
    "os.kill": ("process", START),
    "os.killpg": ("process", START),
    "signal.pthread_kill": ("process", START),
    "subprocess.Popen": ("process", START),
    "ctypes.dlopen": ("ctypes", FOREIGN),
    "ctypes.dlsym": ("ctypes", FOREIGN),
    "ctypes.dlsym/handle": ("ctypes", FOREIGN),
    "ctypes.cdata": ("ctypes", FOREIGN),
    "ctypes.addressof": ("ctypes", FOREIGN),
    "ctypes.string_at": ("ctypes", FOREIGN),
    "ctypes.wstring_at": ("ctypes", FOREIGN),
    "ctypes.PyObj_FromPtr": ("ctypes", FOREIGN),
}
FRAME_ATTRIBUTES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame", "f_code"}
RUNNER = {"pytest", "_pytest", "pluggy", "__main__"}
# They hold no state, and are asked all the time, some by each module whose asserts pytest rewrote.
OPEN = {
    "_pytest",
    "_pytest.assertion",
    "_pytest.assertion.rewrite",
    "_pytest.nodes",
    "_pytest.outcomes",
    "_pytest.timing",
}
PLAIN = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


def install(emit, places, descriptor):
    """Guard a tree from now on; return the Guard.

    Args:
        emit: function that writes a line to the results pipe.
        places: tells whose a file is.
        descriptor: of the results pipe.
    """
    guard = Guard(emit, places, descriptor)
    sys.addaudithook(guard.hook())
    return guard


class Guard:
    """Owns what has been said already: an alarm is raised once."""

    def __init__(self, emit, places, descriptor):
        self.emit = emit
        self.places = places
        self.descriptor = descriptor
        self.said = set()
        self.busy = set()  # threads that are in here: what they do is ours
        self.codes = set()  # of test functions
        self.classes = set()  # id() of test classes

    def alarm(self, event, place):
        if (event, place) not in self.said:
            self.said.add((event, place))
            self.emit("alarm", event=event, place=place)

    def hook(self):
        """Return the audit hook."""
        rules = dict.fromkeys(DIRECT, self.act)
        rules.update({"os.link": self.link, "os.rename": self.link, "os.symlink": self.link})
        rules.update({"open": self.open, "os.listdir": self.list, "os.scandir": self.list})
        rules.update({"object.__getattr__": self.get, "object.__setattr__": self.set})
        rules["compile"] = self.compile
        busy = self.busy

        def audit(event, args):
            rule = rules.get(event)
            if rule is None or (busy and get_ident() in busy):
                return
            busy.add(get_ident())
            try:
                rule(event, args, sys._getframe(1))  # noqa: SLF001
            except Exception:  # noqa: S110  an odd argument, which the suite shall meet itself
                pass
            finally:
                busy.discard(get_ident())

        return audit

    # --- events

    def act(self, event, args, frame):
        alarm, through = DIRECT[event]
        called = event.rpartition(".")[2] if event.startswith(("sys.", "gc.")) else ""
        if not self.places.only_logs(frame):
            self.accuse(alarm, self.places.direct(frame, through, called))

    def accuse(self, alarm, place):
        if place is not None:
            self.alarm(alarm, place)

    def open(self, event, args, frame):
        if isinstance(args[0], int):
            if args[0] == self.descriptor:
                self.accuse("descriptors", self.places.nearest(frame))
            return
        path = os.fsdecode(args[0])
        if self.places.may_matter(path):  # most do not, and to walk the stack takes longer
            self.judge(os.path.realpath(path), frame)

    def link(self, event, args, frame):
        """Judge what another name is made for: under that name it would not be known."""
        folder = os.path.dirname(os.fsdecode(args[1])) if event == "os.symlink" else ""
        self.judge(os.path.realpath(os.path.join(folder, os.fsdecode(args[0]))), frame)

    def judge(self, path, frame):
        if self.places.is_innards(path):
            self.accuse("descriptors", self.places.nearest(frame))
        elif self.places.is_test_code(path):
            self.accuse("reads-test", self.places.nearest(frame))

    def list(self, event, args, frame):
        if isinstance(args[0], int) or args[0] is None:
            return
        if self.places.is_innards(os.path.realpath(os.fsdecode(args[0]))):
            self.accuse("descriptors", self.places.nearest(frame))

    def get(self, event, args, frame):
        name = args[1]
        if name in FRAME_ATTRIBUTES:
            if not self.places.only_tells(frame):
                self.accuse("frames", self.places.direct(frame, HAND_OUT, name))
        elif name == "__code__" and args[0].__code__ in self.codes:
            self.accuse("reads-test", self.places.direct(frame, INSPECT | DISASSEMBLER, name))

    def set(self, event, args, frame):
        if args[1] == "__code__":
            self.accuse("code", self.places.direct(frame))

    def compile(self, event, args, frame):
        name = args[1]
        if isinstance(name, bytes):
            name = os.fsdecode(name)
        if isinstance(name, str) and self.places.of(name)[0] in {"trusted", "test"}:
            self.accuse("code", self.places.direct(frame))

    # --- modules

    def hide_runner(self):
        """Raise `runner` when the tree's source looks into pytest's modules, or into ours."""
        from _pytest.assertion.rewrite import AssertionRewritingHook

        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in RUNNER and name not in OPEN:
                self.hide(module, lambda _: "runner")
        # Everybody finds this one in `sys.meta_path`, and with it all of pytest.
        AssertionRewritingHook.config = self.hidden("config", "runner")
        AssertionRewritingHook.session = self.hidden("session", "runner")

    def hidden(self, name, event):
        """Return a property that raises an alarm when the tree's source takes it."""

        def get(owner):
            self.accuse_caller(event, sys._getframe(1))  # noqa: SLF001
            return vars(owner)[name]

        def put(owner, value):
            vars(owner)[name] = value

        return property(get, put)

    def hide_tests(self, items):
        """Raise an alarm when the tree's source takes tests or data from test modules.

        `test-data` is another alarm than `reads-test`: where a suite does the one, the other is no
        less odd.
        """
        self.codes.update(filter(None, map(code_of, items)))
        self.classes.update(id(item.cls) for item in items if getattr(item, "cls", None))
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and self.places.of(path)[0] == "test":
                self.hide(module, self.taken)

    def hide(self, module, event_of):
        """Raise an alarm when the tree's source takes from a module what is not open to it.

        Args:
            module: whose attributes are looked at.
            event_of: returns the alarm for a value; empty when the value is open to all.
        """
        get = types.ModuleType.__getattribute__
        accuse = self.accuse_caller

        class Module(types.ModuleType):
            def __getattribute__(self, name):
                value = get(self, name)
                if name[:2] != "__" or name == "__dict__":
                    accuse(event_of(value), sys._getframe(1))  # noqa: SLF001
                return value

        if type(module) is types.ModuleType:
            module.__class__ = Module

    def accuse_caller(self, event, frame):
        """Raise an alarm, if it is one, and if the frame is the source's."""
        me = get_ident()
        if me in self.busy or not event:
            return
        self.busy.add(me)
        try:
            place = self.places.direct(frame, INSPECT)
        finally:
            self.busy.discard(me)
        self.accuse(event, place)

    def taken(self, value):
        """Return the alarm for taking a value from a test module; none for what pickles look up."""
        is_plain = isinstance(value, PLAIN)
        if isinstance(value, dict) or (is_plain and self.is_test(value)):
            return "reads-test"
        return "" if is_plain else "test-data"

    def is_test(self, value):
        code = value.__code__ if type(value) is types.FunctionType else None
        return id(value) in self.classes or code in self.codes

    def forget_lines(self):
        """Forget the lines of test modules that a traceback has shown: to read them is to open."""
        cache = getattr(sys.modules.get("linecache"), "cache", {})
        for name in [name for name in cache if self.places.of(name)[0] == "test"]:
            cache.pop(name, None)


def code_of(item):
    """Return the code of a test; None of one that is no function."""
    function = getattr(item, "obj", None)
    function = getattr(function, "__func__", function)
    function = getattr(function, "__wrapped__", function)
    return getattr(function, "__code__", None)
