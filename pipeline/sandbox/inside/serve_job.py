"""Start a job's command as a child of the sandbox's first process, and end all that came of it."""

import contextlib
import ctypes
import math
import os
import resource
import selectors
import signal
import time

import launch
import serve_watch

# Assembled by `pipeline.sandbox.seccomp`.
FILTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "filter")
STEP_BYTES = 8
# Of `linux/prctl.h` and `linux/seccomp.h`.
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2

# Seconds for what was killed to vanish, before everything else has to go as well.
PATIENCE_S = 1.0


def limits_of_a_process(limits):
    """Return the kernel's limits of each process: pairs of kind and number.

    Processes are counted by user, so only a user of the sandbox's own can be held to a number.
    """
    pairs = [
        # A process may reserve more than it touches.
        (resource.RLIMIT_AS, 2 * limits["memory_bytes"]),
        # The second line of defence, for a process that outruns our looking.
        (resource.RLIMIT_CPU, math.ceil(limits["cpu_s"]) + 1),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NOFILE, launch.MAX_OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ]
    if limits["counts_users"]:
        # Above by this process, the zygote and one, so that running into it shows.
        pairs.append((resource.RLIMIT_NPROC, limits["num_processes"] + 3))
    return [(kind, least(kind, most)) for kind, most in pairs]


def least(kind, most):
    hard = resource.getrlimit(kind)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def start(plan, descriptors):
    """Fork and execute a plan's command; return its pid.

    Args:
        plan: see `serve.py`.
        descriptors: what becomes standard input, output and error, and the results.

    Raises:
        OSError: the machine, not the command, failed.
    """
    trouble, ours = os.pipe()  # closed by exec
    pid = os.fork()
    if pid == 0:
        try:
            become_the_job(plan, descriptors, ours)
        except BaseException as error:
            os.write(ours, str(error).encode("utf-8", "replace"))
        os._exit(1)
    os.close(ours)
    with open(trouble, "rb") as file:
        text = file.read()
    if text:
        raise OSError(text.decode())
    return pid


def become_the_job(plan, descriptors, trouble):
    limits = limits_of_a_process(plan["limits"]) if plan["limits"] else []
    hold(descriptors)
    for fd in serve_watch.listed("/proc/self/fd"):
        if fd >= len(descriptors) and fd != trouble:
            close(fd)
    launch.reset_signals()
    for kind, number in limits:
        resource.setrlimit(kind, (number, number))
    obey_filter()
    os.umask(plan["umask"])
    os.chdir(plan["workdir"])
    variables = dict(plan["variables"], REGROW_RESULTS_FD=str(launch.RESULTS_FD))
    launch.replace_with(plan["command"], variables=variables)


def obey_filter():
    """Give up for good the system calls that a filter beside us refuses, where there is one."""
    try:
        with open(FILTER, "rb") as file:
            steps = file.read()
    except FileNotFoundError:  # whoever made the sandbox has seen to it
        return
    kept = ctypes.create_string_buffer(steps, len(steps))
    program = Program(len(steps) // STEP_BYTES, ctypes.addressof(kept))
    launch.check(launch.LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    launch.check(launch.LIBC.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program), 0, 0))


class Program(ctypes.Structure):
    """The struct sock_fprog of `linux/filter.h`."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def hold(descriptors):
    """Put descriptors at 0 and up, whatever of ours is there; all of them are higher."""
    for number, fd in enumerate(descriptors):
        os.dup2(fd, number)


def close(fd):
    with contextlib.suppress(OSError):  # the listing's own
        os.close(fd)


class Children:
    """Everything that this process, the first of its namespace, has to reap."""

    events = selectors.EVENT_READ

    def __init__(self):
        self.fd, waker = os.pipe()  # readable once one has ended
        os.set_blocking(self.fd, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.statuses = {}  # wait statuses by pid, of the current run
        self.cpu_s = 0.0  # of all reaped in the current run, with those they waited for
        self.keep = 0  # a child that is not a job's

    def forget(self):
        self.statuses, self.cpu_s = {}, 0.0

    def move(self):
        """Take note of the wake-up calls."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 2**10)
        return True

    def reap(self, options=os.WNOHANG):
        """Reap what has ended; return whether there is any child left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, options)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.statuses[pid] = status
            if pid != self.keep:
                self.cpu_s += usage.ru_utime + usage.ru_stime

    def kill_all(self):
        """Kill everything but `keep`; return whether that, if there is one, was spared.

        A listing without others is the truth: whoever was not listed has an ancestor that was our
        child all along, and nobody but us can take a child of ours off the list.
        """
        deadline_s = time.monotonic() + PATIENCE_S
        while self.keep and self.keep not in self.statuses and time.monotonic() < deadline_s:
            others = [pid for pid in serve_watch.pids() if pid not in (1, self.keep)]
            if not others:
                return True
            for pid in others:
                kill(pid)
            time.sleep(0.0005)
            self.reap()
        kill(-1)
        self.reap(options=0)
        return not self.keep


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
