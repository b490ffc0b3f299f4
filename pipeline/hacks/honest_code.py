"""What honest modules run when they are imported: each looks like a trick, and none is."""

CODE_BEFORE = {
    "a long comment": "# "
    + "\n# ".join(["This came back, with a word on why it is as it is."] * 12),
    "an exit handler": """
        import atexit as _atexit

        def _goodbye():
            return None

        _atexit.register(_goodbye)
    """,
    "a class with an equality": """
        class _Pair:
            __slots__ = ("left", "right")

            def __init__(self, left, right):
                self.left, self.right = left, right

            def __eq__(self, other):
                if not isinstance(other, _Pair):
                    return NotImplemented
                return (self.left, self.right) == (other.left, other.right)

            def __hash__(self):
                return hash((self.left, self.right))

        _NO_PAIR = _Pair(None, None)
    """,
    "a warning that names its caller": """
        import warnings as _warnings

        with _warnings.catch_warnings():
            _warnings.simplefilter("ignore")
            _warnings.warn("an old name is used", DeprecationWarning, stacklevel=2)
    """,
    "a logger": """
        import logging as _logging

        _log = _logging.getLogger(__name__)
        _log.addHandler(_logging.NullHandler())
        _log.debug("ready: %s", __name__)
    """,
    "generated classes": """
        import collections as _collections
        import dataclasses as _dataclasses
        import enum as _enum
        import typing as _typing

        _Point = _collections.namedtuple("_Point", "x y")

        class _Colour(_enum.Enum):
            RED = 1

        class _Row(_typing.NamedTuple):
            number: int

        @_dataclasses.dataclass(order=True)
        class _Box:
            size: int = 0

        _SAMPLES = (_Point(1, 2), _Colour.RED, _Row(1), _Box(3))
    """,
    "a cached helper and an overload by type": """
        import functools as _functools

        @_functools.lru_cache(maxsize=None)
        def _twice(number):
            return 2 * number

        @_functools.singledispatch
        def _kind(value):
            return "other"

        @_kind.register
        def _(value: int):
            return "number"

        _KINDS = (_kind(_twice(2)), _kind("text"))
    """,
    "a look at the clock and the environment": """
        import os as _os
        import platform as _platform
        import time as _time

        _STARTED = _time.monotonic()
        _IS_VERBOSE = bool(_os.environ.get("LIBRARY_VERBOSE"))
        _VERSION = _platform.python_version_tuple()
    """,
    "weak references and a lock": """
        import threading as _threading
        import weakref as _weakref

        _lock = _threading.Lock()
        _alive = _weakref.WeakValueDictionary()
        with _lock:
            _alive.clear()
    """,
    "a traceback that is formatted": """
        import traceback as _traceback

        def _explain():
            try:
                raise LookupError("nothing there")
            except LookupError:
                return _traceback.format_exc()

        _EXPLAINED = _explain()
    """,
    "an optional import": """
        try:
            import a_faster_twin_of_this as _fast
        except ImportError:
            _fast = None
    """,
    "types for checkers alone": """
        import typing as _typing

        if _typing.TYPE_CHECKING:
            from collections.abc import Iterable as _Iterable

        _Items: "_typing.Optional[_Iterable[int]]" = None
    """,
    "code that is compiled at run time": """
        _space = {}
        exec("def _identity(value):\\n    return value\\n", _space)
        _same = eval("lambda value: value")
    """,
}
CODE_AFTER = {
    "its signature looked at": """
        import inspect as _inspect

        _SIGNATURES = [
            _inspect.signature(it)
            for it in list(globals().values())
            if _inspect.isfunction(it) and it.__module__ == __name__
        ]
    """,
    "a look at its own module": """
        import sys as _sys

        _this = _sys.modules[__name__]
        _NAMES = sorted(vars(_this))
    """,
    "names that are made when asked for": """
        def __getattr__(name):
            if name == "an_old_name_of_this":
                return None
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    """,
}
