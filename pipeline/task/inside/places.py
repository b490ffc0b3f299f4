"""Tell by the frames of a stack whose code acts: the tree's source, its tests, or somebody else."""

import os
import sys
import types

STANDARD = os.path.dirname(types.__file__)
# Programs of the sandbox: a warm worker's runs start below one.
SANDBOX = "/run/regrow"
LOGGING = os.path.join(STANDARD, "logging", "__init__.py")
TRACEBACK = os.path.join(STANDARD, "traceback.py")
# Its functions that look up lines for the frames they are given, and those that give them a stack.
TELLS = {"extract", "_extract_from_extended_frame_gen", "clear_frames"}
STACKS = {"print_stack", "format_stack", "extract_stack"}
# Below a process's folder of /proc: what its descriptors and its memory can be reached by.
INNARDS = {"fd", "fdinfo", "map_files", "maps", "mem", "smaps"}
# Where the stack of a thread begins that somebody started on a function of the interpreter.
THREADS = {
    os.path.join(STANDARD, "threading.py"),
    os.path.join(STANDARD, "concurrent", "futures", "thread.py"),
}


class Places:
    """Tell whose a file is: `source`, `test`, `trusted` or `unknown`, with its path in the tree."""

    def __init__(self, tree, tests):
        self.tree = tree + "/"
        self.tests = set(tests)
        self.stems = {stem_of(path) for path in tests}
        self.names = {stem.rpartition("/")[2] for stem in self.stems}
        prefixes = {sys.prefix, sys.base_prefix, STANDARD, SANDBOX, os.path.dirname(__file__)}
        self.trusted = (*(prefix + "/" for prefix in prefixes), "<frozen ")
        self.known = {}

    def of(self, name):
        """Classify the file name of a code object."""
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = self.classify(name)
        return found

    def classify(self, name):
        if name.startswith("<"):
            return ("trusted" if name.startswith(self.trusted) else "unknown", "")
        path = os.path.normpath(os.path.join(self.tree, name))
        if path.startswith(self.tree):
            path = path[len(self.tree) :]
            return ("test" if path in self.tests else "source", path)
        return ("trusted" if path.startswith(self.trusted) else "unknown", "")

    def is_test_code(self, path):
        """Tell whether a real path is a test module, or the bytecode of one."""
        prefix = sys.pycache_prefix
        if prefix and path.startswith(prefix + "/"):
            path = path[len(prefix) :]
        return path.startswith(self.tree) and stem_of(path[len(self.tree) :]) in self.stems

    def is_innards(self, path):
        """Tell whether a real path leads to the descriptors or the memory of a process."""
        parts = path.split("/")
        return parts[1] == "proc" and not INNARDS.isdisjoint(parts)

    def may_matter(self, path):
        """Tell quickly whether a path may lead to a test module, or into /proc, by its name."""
        folder, _, name = path.rpartition("/")
        return (
            name.partition(".")[0] in self.names
            or "proc/" in path
            or name in INNARDS
            or folder.rpartition("/")[2] in INNARDS
        )

    def direct(self, frame, through=frozenset(), called=""):
        """Return which file of the tree's source acts in a frame; None when none does.

        A library that does not name what is `called` only calls what it was given: a finalizer,
        a cached property. It acts for who called it.
        Code without a file (`exec`, what a decorator generates) acts for who called it. A file
        that is nowhere we know, and a thread that runs no file at all, have the empty name.
        """
        name, stray = "", None
        while frame is not None:
            name = frame.f_code.co_filename
            kind, path = self.of(name)
            if kind == "source":
                return path
            if kind == "unknown" and name.startswith("/"):
                stray = ""
            is_given = called != "" and called not in frame.f_code.co_names
            is_through = (
                is_given
                or name in THREADS
                or not through.isdisjoint((name, (name, frame.f_code.co_name)))
            )
            if kind == "test" or (kind == "trusted" and not is_through):
                return stray
            frame = frame.f_back
        return "" if name in THREADS else stray

    def only_logs(self, frame):
        """Tell whether a logger looks for who logs, and hands no frame out."""
        caller = frame.f_back and frame.f_back.f_code
        return caller is not None and (caller.co_filename, caller.co_name) == (
            LOGGING,
            "findCaller",
        )

    def only_tells(self, frame):
        """Tell whether an exception is told of, which hands no frame out; a stack does not count.

        The lines of a stack are those of the test that runs.
        """
        names = set()
        while frame is not None and frame.f_code.co_filename == TRACEBACK:
            names.add(frame.f_code.co_name)
            frame = frame.f_back
        return not TELLS.isdisjoint(names) and STACKS.isdisjoint(names)

    def nearest(self, frame):
        """Return the file of the tree's source that acts, by whatever libraries.

        An exception that a test's own function raised may be told with its lines.
        """
        name = ""
        while frame is not None:
            name = frame.f_code.co_filename
            if self.only_tells(frame):
                return None
            kind, path = self.of(name)
            if kind == "source":
                return path
            if kind == "test":
                return None
            frame = frame.f_back
        return "" if name in THREADS else None


def stem_of(path):
    """Return a path without the endings of its name: `a/b.cpython-311.pyc` is `a/b`."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + name.partition(".")[0]
