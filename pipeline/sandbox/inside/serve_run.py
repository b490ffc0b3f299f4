"""Run one job from its start to the death of all its processes, within its limits."""

import os
import selectors
import time

CHUNK_BYTES = 2**16
TICK_S = 0.05


class Run:
    """One job."""

    def __init__(self, plan, host, children, watch):
        self.plan = plan
        self.host = host
        self.children = children
        self.watch = watch
        self.selector = selectors.DefaultSelector()
        self.output = Intake(b"O", plan["limits"]["output_bytes"], host)
        self.results = Intake(b"X", plan["limits"]["results_bytes"], host)
        self.pid = 0
        self.is_spared = True  # what is no job's was left alone

    def until_the_end(self, start, stdin):
        """Start the command, serve it, kill what is left; return the limit that ended it, or "".

        Args:
            start: starts the plan's command with descriptors for 0, 1, 2 and the results.
            stdin: fed to standard input, then closed.

        Raises:
            OSError: the machine, not the command, failed.
        """
        feed = Feed(stdin)
        descriptors = [feed.reader, self.output.writer, self.output.writer, self.results.writer]
        self.children.forget()
        self.pid = start(self.plan, descriptors)
        for fd in set(descriptors):
            os.close(fd)
        limit = self.pump(feed)
        self.is_spared = self.children.kill_all()
        self.output.drain()
        self.results.drain()
        feed.close()
        self.selector.close()
        return limit or self.over() or self.watch.overfilled()

    def pump(self, feed):
        """Move what flows until the command has ended, or went over a limit; return that."""
        for item in (feed, self.output, self.results, self.children, self.host):
            self.selector.register(item.fd, item.events, item)
        ends_s = time.monotonic() + self.plan["limits"]["wall_s"]
        limit = ""
        while not limit and self.pid not in self.children.statuses:
            for key, _ in self.selector.select(TICK_S):
                if not key.data.move():
                    self.selector.unregister(key.fd)
                    key.data.close()
            self.children.reap()
            limit = self.over() or self.watch.exceeded(self.children.cpu_s)
            limit = limit or ("wall" if time.monotonic() > ends_s else "")
        return limit

    def over(self):
        return "output" if self.output.is_over or self.results.is_over else ""

    def exit_code(self):
        """Return the exit status of the command, negative for a signal."""
        return os.waitstatus_to_exitcode(self.children.statuses[self.pid])


class End:
    """Our end of a pipe, closed at most once."""

    def __init__(self, fd):
        self.fd = fd
        self.is_open = True
        os.set_blocking(fd, False)

    def close(self):
        if self.is_open:
            self.is_open = False
            os.close(self.fd)


class Intake(End):
    """What a job writes: sent on until it ends, or has brought more than its cap."""

    events = selectors.EVENT_READ

    def __init__(self, kind, cap_bytes, host):
        reader, self.writer = os.pipe()
        super().__init__(reader)
        self.kind = kind
        self.room = cap_bytes
        self.host = host
        self.is_over = False

    def move(self):
        """Send on a chunk of what is there; return whether more may come."""
        try:
            chunk = os.read(self.fd, CHUNK_BYTES)
        except BlockingIOError:
            return True
        if chunk:
            self.host.send(self.kind, chunk[: self.room])
        self.is_over = len(chunk) > self.room
        self.room -= min(len(chunk), self.room)
        return bool(chunk) and not self.is_over

    def drain(self):
        """Send on what a dead job has left."""
        room = -1
        while self.is_open and room != self.room:
            room = self.room
            if not self.move():
                self.close()
        self.close()


class Feed(End):
    """The standard input of a job: what there is, then the end."""

    events = selectors.EVENT_WRITE

    def __init__(self, data):
        self.reader, writer = os.pipe()
        super().__init__(writer)
        self.left = memoryview(data)

    def move(self):
        """Write what fits; return whether more is to come."""
        try:
            self.left = self.left[os.write(self.fd, self.left[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return bool(self.left)
