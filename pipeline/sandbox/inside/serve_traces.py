"""Remove what a job has left in a sandbox, and notice what cannot be removed."""

import os

import serve_folders
import serve_watch

# What the kernel keeps for a namespace when all its processes are gone; each has a heading.
TABLES = ("/proc/sysvipc/msg", "/proc/sysvipc/sem", "/proc/sysvipc/shm")
# Connections, those that wait for late packets included: another job could not have their ports.
# Lines of a name and its counters; the whole lists take a walk through all of the machine.
CONNECTIONS = ("/proc/1/net/sockstat", "/proc/1/net/sockstat6")
# Of this namespace: in use, waiting.
COUNTERS = (b"inuse", b"tw")


class Traces:
    """The places that jobs write to, as they are before any job."""

    def __init__(self, temporary, folders):
        self.folders = folders
        self.places = [*temporary, *folders]
        self.before = {place: look(place) for place in temporary}
        self.bytes = {place: serve_watch.volume_bytes(place) for place in self.places}

    def remove(self):
        """Remove everything in all places; return what has stayed."""
        try:
            for place in self.places:
                self.empty(place)
        except (OSError, RecursionError) as error:
            return ["something cannot be removed: %s" % error]
        doubts = [place for place in self.places if os.listxattr(place)]
        doubts += [
            place for place, size in self.bytes.items() if serve_watch.volume_bytes(place) != size
        ]
        doubts += [table for table in TABLES if num_lines(table) > 1]
        return doubts + [table for table in CONNECTIONS if num_connections(table)]

    def empty(self, place):
        if place in self.folders:
            os.chmod(place, 0o700)
        elif look(place) != self.before[place]:
            os.chmod(place, self.before[place])
        serve_folders.wipe(place)


def look(place):
    return os.stat(place).st_mode & 0o7777


def num_lines(table):
    return len(lines(table))


def num_connections(table):
    """Return how many TCP sockets the namespace has."""
    rows = [line.split() for line in lines(table) if line.startswith(b"TCP")]
    pairs = [row[at : at + 2] for row in rows for at in range(1, len(row) - 1, 2)]
    return sum(int(number) for name, number in pairs if name in COUNTERS)


def lines(table):
    try:
        return serve_watch.read(table).splitlines()
    except FileNotFoundError:  # a kernel without
        return []
