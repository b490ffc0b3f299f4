"""Keep what the processes of a traced run share: marks, and the modules that have them.

The folder is in `/tmp`, which is the job's own. Its file `marks` is in the memory of all of them;
a module that one process has marked is there for the others, with the numbers of its marks.
"""

import fcntl
import marshal
import mmap
import os

FOLDER = "/tmp/.regrow-trace"
# How many marks there can be; the file is sparse.
MOST = 1 << 22
SUFFIX = ".module"


class Store:
    """A traced run as one of its processes sees it."""

    def __init__(self):
        with open(os.path.join(FOLDER, "marks"), "r+b") as file:
            shared = memoryview(mmap.mmap(file.fileno(), 2 * MOST + mmap.PAGESIZE))
        self.folders, self.base = read(os.path.join(FOLDER, "run"))
        self.calls, self.imports = shared[:MOST], shared[MOST : 2 * MOST]
        # How many marks are given out, and whether anybody besides the runner marks.
        self.header = shared[2 * MOST : 2 * MOST + 16].cast("Q")

    def join(self):
        self.header[1] = 1

    def take(self, marks):
        """Return the marks that other processes left in a part of the file, and remove them."""
        count = self.header[0] if self.header[1] else 0
        found = bytes(marks[:count])
        if 1 in found:
            marks[:count] = bytes(count)
        return found

    def module(self, key, make):
        """Return first mark, path, stretches and code of a module, made unless it is there.

        `make` gets the first free number, and returns path, stretches and code.
        """
        path = os.path.join(FOLDER, key + SUFFIX)
        with open(os.path.join(FOLDER, "lock"), "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                return read(path) if os.path.exists(path) else self.add(path, make)
            finally:  # not by closing: a process that another thread forks has the file open too
                fcntl.flock(file, fcntl.LOCK_UN)

    def add(self, path, make):
        first = self.header[0]
        record = (first, *make(first, MOST - first))
        write(path, record)
        self.header[0] = first + len(record[2])
        return record

    def modules(self):
        """Yield first mark, path and stretches of each module that has marks."""
        for name in sorted(os.listdir(FOLDER)):
            if name.endswith(SUFFIX):
                yield read(os.path.join(FOLDER, name))[:3]


def read(path):
    with open(path, "rb") as file:
        return marshal.load(file)  # noqa: S302  written by `write`


def write(path, value):
    with open(path + ".part", "wb") as file:
        marshal.dump(value, file)
    os.replace(path + ".part", path)


def make_store(folders, base):
    """Begin a traced run of the files below `folders` in a tree at `base`."""
    os.mkdir(FOLDER)
    with open(os.path.join(FOLDER, "marks"), "wb") as file:
        file.truncate(2 * MOST + mmap.PAGESIZE)
    write(os.path.join(FOLDER, "run"), (folders, base))  # last: whoever finds it may join
    return Store()
