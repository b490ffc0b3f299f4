"""Hold on to a zygote: start it, have it fork, and tell whether a job has touched it."""

import marshal
import os
import resource
import select
import socket

import serve_job
import serve_watch

ZYGOTE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zygote.py")
MESSAGE_BYTES = 2**20
# Seconds to import what is to be preloaded; to fork, or to answer.
PRELOAD_S, ANSWER_S = 60, 5
# The kernel's limits of a process that Python knows.
KINDS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})


class Zygote:
    """A process that forks jobs; see `zygote.py`."""

    def __init__(self, plan, *, writable):
        """Start one.

        Raises:
            OSError: it does not start, or would not do.
        """
        self.hub, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = start(plan, theirs.fileno())
        self.say((plan["preload"], writable))
        why = self.hear(PRELOAD_S)
        if why:
            raise OSError(why)
        self.state = self.look()

    def fork(self, plan, descriptors):
        """Have it fork for a plan; return the pid of the fork.

        Raises:
            OSError: it did not, or the fork could not become the job.
        """
        request = {
            "command": plan["command"],
            "workdir": plan["workdir"],
            "limits": serve_job.limits_of_a_process(plan["limits"]),
            "group": os.getpgid(0),
        }
        socket.send_fds(self.hub, [marshal.dumps(request, 2)], descriptors)
        pid, why = self.hear(ANSWER_S)
        if why:
            raise OSError(why)
        return pid

    def is_sound(self):
        """Return whether it is as it was before any job ran."""
        try:
            self.say(None)
            return self.hear(ANSWER_S) == "" and self.look() == self.state
        except OSError:
            return False

    def say(self, message):
        self.hub.send(marshal.dumps(message, 2))

    def hear(self, timeout_s):
        if not select.select([self.hub], [], [], timeout_s)[0]:
            raise OSError("the zygote does not answer")
        data = self.hub.recv(MESSAGE_BYTES)
        if not data:
            raise OSError("the zygote has ended")
        return marshal.loads(data)  # noqa: S302  from a process of ours

    def look(self):
        """Return what a job, which has the same user, could change of a process."""
        fields = serve_watch.stat(self.pid)
        limits = [resource.prlimit(self.pid, kind) for kind in KINDS]
        # Of proc_pid_stat(5): group, session, niceness, threads, policy.
        seen = [fields[number] for number in (2, 3, 16, 17, 38)]
        return limits, seen, os.sched_getaffinity(self.pid)


def start(plan, hub):
    """Execute the interpreter of the plan's command on the zygote; return its pid.

    Its standard descriptors are pipes, as a job's are: Python looks when it starts.
    """
    pipes = [end for _ in range(2) for end in os.pipe()]
    mine = dict(
        plan,
        command=[plan["command"][0], ZYGOTE, "4"],
        workdir="/",
        limits={},
    )
    try:
        return serve_job.start(mine, [pipes[0], pipes[1], pipes[1], pipes[3], hub])
    finally:
        for end in pipes:
            os.close(end)
