"""Write the lines of a run to the results pipe, which code under test shares the process with."""

import json
import os
import sys
from _thread import RLock

HERE = os.path.dirname(__file__)


def open_pipe(descriptor, nonce):
    """Take over the results pipe; return a function that writes a line to it.

    The nonce is a local variable of a generator: whoever looks there raises an alarm, and so does
    a caller that is none of ours.
    """
    os.set_inheritable(descriptor, False)
    getpid, owner = os.getpid, os.getpid()
    lock = RLock()
    waiting = []
    writer = write_lines(descriptor, nonce, json.dumps, os.write)
    next(writer)

    def emit(kind, **fields):
        is_ours = getpid() == owner  # a process that a test forked may run on as pytest
        if not is_ours and kind != "alarm":
            return
        caller = sys._getframe(1).f_code.co_filename  # noqa: SLF001
        if os.path.dirname(caller) != HERE:
            kind, fields = "alarm", {"event": "emit", "place": ""}
        with lock:
            waiting.append((is_ours, dict(fields, kind=kind)))
            while waiting and not writer.gi_running:  # else a finalizer breaks in on a line
                writer.send(waiting.pop(0))

    return emit


def write_lines(descriptor, nonce, dumps, write):
    """Write each message that is sent; functions are given, for those of a module are anybody's."""
    number = 0
    while True:
        is_ours, message = yield
        rest = "%s %s %s\n" % (nonce, number if is_ours else "fork", dumps(message))
        rest = rest.encode("ascii")
        number += is_ours
        while rest:  # what the suite has said is safe, whatever it does next
            rest = rest[write(descriptor, rest) :]
