"""Assemble the system call filter that every job runs under.

Namespaces and limits leave gaps that only a filter closes: a nested user namespace may mount a
tmpfs that nobody measures, a memfd or System V segment is memory that no process is charged for,
keyrings are shared between sandboxes, and the first process may be held up by its own user.
Most calls fail as on a kernel that lacks them, so that libraries fall back. The format is classic
BPF over `struct seccomp_data` (seccomp(2)).
"""

import errno
import struct
from dataclasses import dataclass

from pipeline.sandbox.protocol import SandboxUnavailableError

# Every CLONE_NEW* flag of `linux/sched.h` that fits clone's first argument.
_NEW_NAMESPACE = 0x7E020000
# The launcher or the server: it watches the limits, so a job must not slow it down.
_FIRST_PID = 1
_PRIO_PROCESS = 0
# Offsets in `struct seccomp_data`: number, architecture, low halves of the first two arguments.
_NUMBER, _ARCHITECTURE, _ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
# Numbers from here on are the x32 flavour of x86-64; no other architecture has any so high.
_X32 = 0x40000000

_LOAD = 0x20
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_IF_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_FAIL = 0x00050000


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The numbers of one architecture."""

    # AUDIT_ARCH_* of `linux/audit.h`.
    architecture: int
    # Number of `clone`, which is refused when it would make a namespace.
    clone: int
    # Numbers of calls whose first argument is a process, refused for the first one: prlimit64,
    # sched_setaffinity, sched_setattr, sched_setparam, sched_setscheduler.
    meddling: tuple[int, ...]
    # Number of `setpriority`, which is refused for the first process, for groups and for users.
    priority: int
    # Numbers of calls that are refused as not permitted: unshare, setns.
    forbidden: tuple[int, ...]
    # Numbers of calls that seem not to exist: clone3 (its flags cannot be read by a filter),
    # memfd_create, memfd_secret, shmget, add_key, request_key, keyctl, bpf, perf_event_open,
    # userfaultfd, io_uring_setup.
    absent: tuple[int, ...]


MACHINES = {
    "x86_64": Machine(
        architecture=0xC000003E,
        clone=56,
        meddling=(302, 203, 314, 142, 144),
        priority=141,
        forbidden=(272, 308),
        absent=(435, 319, 447, 29, 248, 249, 250, 321, 298, 323, 425),
    ),
    "aarch64": Machine(
        architecture=0xC00000B7,
        clone=220,
        meddling=(261, 122, 274, 118, 119),
        priority=140,
        forbidden=(97, 268),
        absent=(435, 279, 447, 194, 217, 218, 219, 280, 241, 282, 425),
    ),
}


def program(machine: str) -> bytes:
    """Return the filter for a machine as `platform.machine()` names it.

    Raises:
        SandboxUnavailableError: nobody has listed that machine's system calls.
    """
    if machine not in MACHINES:
        raise SandboxUnavailableError(
            f"no system call filter for {machine!r}, only for {', '.join(MACHINES)}"
        )
    calls = MACHINES[machine]
    absent, forbidden = _FAIL | errno.ENOSYS, _FAIL | errno.EPERM
    steps = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_IF_EQUAL, calls.architecture, skip_if=1),
        _step(_RETURN, absent),
        _step(_LOAD, _NUMBER),
        _step(_IF_AT_LEAST, _X32, skip_else=1),
        _step(_RETURN, absent),
        *_answer(calls.absent, absent),
        *_answer(calls.forbidden, forbidden),
        _step(_IF_EQUAL, calls.clone, skip_else=4),
        _step(_LOAD, _ARGUMENT),
        _step(_IF_ANY_BIT, _NEW_NAMESPACE, skip_else=1),
        _step(_RETURN, forbidden),
        _step(_RETURN, _ALLOW),
        _step(_IF_EQUAL, calls.priority, skip_else=5),
        _step(_LOAD, _ARGUMENT),
        _step(_IF_EQUAL, _PRIO_PROCESS, skip_else=2),
        _step(_LOAD, _SECOND_ARGUMENT),
        _step(_IF_EQUAL, _FIRST_PID, skip_else=1),
        _step(_RETURN, forbidden),
        *_unless_first(calls.meddling, forbidden),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(steps)


def _unless_first(numbers: tuple[int, ...], answer: int) -> list[bytes]:
    """Return the steps that give one answer to each of the calls for the first process."""
    return [
        step
        for number in numbers
        for step in (
            _step(_LOAD, _NUMBER),
            _step(_IF_EQUAL, number, skip_else=3),
            _step(_LOAD, _ARGUMENT),
            _step(_IF_EQUAL, _FIRST_PID, skip_else=1),
            _step(_RETURN, answer),
        )
    ]


def _answer(numbers: tuple[int, ...], answer: int) -> list[bytes]:
    """Return the steps that give one answer to each of the calls."""
    return [
        step
        for number in numbers
        for step in (_step(_IF_EQUAL, number, skip_else=1), _step(_RETURN, answer))
    ]


def _step(operation: int, value: int, *, skip_if: int = 0, skip_else: int = 0) -> bytes:
    """Encode one `struct sock_filter`: how many steps a comparison skips if it holds, or else."""
    return struct.pack("=HBBI", operation, skip_if, skip_else, value)
