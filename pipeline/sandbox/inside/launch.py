"""Start a job's command from inside its sandbox, as the first process there.

It runs before any untrusted code and stays until the command ends: as the first process of its
namespace nothing inside can kill it, it adopts what the command leaves behind, and it alone knows
the exact exit status. Only the standard library, and few modules of it: its start is the job's.

Arguments: the descriptors of plan, status, results and collected file. The plan is texts that each
end in NUL: the numbers, comma-separated; the working directory; the file to collect, or nothing,
and how large it may be; the number of folders to hand over and those folders; the number of
variables and those as `NAME=value`; the command. The numbers are: 1 when it starts as the
namespace's root, bytes of address space, CPU seconds, bytes of a file, processes.
"""

import ctypes
import errno
import fcntl
import os
import resource
import signal
import stat
import sys

USER_ID = 1000
RESULTS_FD = 3
MAX_OPEN_FILES = 1024
# Of `linux/capability.h`: CHOWN, SETGID, SETUID, SETPCAP.
CAPABILITIES = (0, 6, 7, 8)
# Of `linux/prctl.h` and `linux/capability.h`.
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
CAPABILITY_VERSION_3 = 0x20080522
# What exec may answer through no fault of the command.
FAULTS_OF_THE_MACHINE = (errno.ENOMEM, errno.EAGAIN, errno.EIO, errno.ENFILE)

# The tmpfs that a job can write to, and what an inode of one costs the kernel.
VOLUMES = ("/", "/tmp", "/home/regrow", "/dev/shm")
INODE_BYTES = 2**10

LIBC = ctypes.CDLL(None, use_errno=True)


def main(plan: int, status: int, results: int, collected: int) -> None:
    """Run the command and tell the status descriptor how it went."""
    numbers, workdir, wanted, most_bytes, *rest = read(plan)
    folders, rest = rest[1 : 1 + int(rest[0])], rest[1 + int(rest[0]) :]
    variables, command = rest[1 : 1 + int(rest[0])], rest[1 + int(rest[0]) :]
    status, collected = keep_descriptors(status, collected, results=results)
    try:
        prepare(folders)
        os.write(status, b"ready\n")
        child = os.fork()
        if child == 0:
            become_the_job(*map(int, numbers.split(",")))
            os.chdir(workdir)
            variables.append(f"REGROW_RESULTS_FD={RESULTS_FD}")
            replace_with(command, variables=dict(pair.split("=", 1) for pair in variables))
    except Exception as error:
        os.write(status, f"failed {error}\n".encode("utf-8", "replace"))
        os._exit(1)
    code = os.waitstatus_to_exitcode(wait_for(child))
    kill_the_rest()
    said = f"used {used_bytes()}\n"
    if wanted:
        said += f"collected {collect(wanted, int(most_bytes), into=collected)}\n"
    os.write(status, f"{said}ended {code}\n".encode())
    # Nothing is worth tidying up: the namespaces end with this process.
    os._exit(0)


def read(plan: int) -> list[str]:
    """Return the texts of the plan, as the file system would name them."""
    with os.fdopen(plan, "rb") as file:
        return os.fsdecode(file.read()).split("\0")[:-1]


def keep_descriptors(*ours: int, results: int) -> list[int]:
    """Close all but the standard ones, `RESULTS_FD` and ours; return where those are now."""
    above = max(*ours, results, RESULTS_FD + len(ours)) + 1
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in ours]
    os.dup2(results, RESULTS_FD)
    os.closerange(RESULTS_FD + 1, above)
    kept = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, RESULTS_FD + 1) for fd in moved]
    os.closerange(max(kept) + 1, 2**20)
    return kept


def prepare(folders: list[str]) -> None:
    """Hand folders to the job's user, and shield this process from the job.

    Without being dumpable it can be neither traced nor looked into through /proc by its own user.
    """
    for folder in folders:
        os.chown(folder, USER_ID, USER_ID)
    # A machine out of memory shall pick a job before the driver.
    score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(score, b"500")
    os.close(score)
    check(LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
    # As a first process it is deaf to every signal from inside that has no handler.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def become_the_job(
    is_root: int, address_space_bytes: int, cpu_s: int, file_bytes: int, num_processes: int
) -> None:
    """Give up the namespace's root and take on the limits."""
    if is_root:
        drop_root()
    for kind, most in (
        (resource.RLIMIT_AS, address_space_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NPROC, num_processes),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
        # Queues of messages are nobody's memory, and outlive the processes of a warm worker's job.
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))
    reset_signals()


def reset_signals() -> None:
    """Handle all as usual.

    What is ignored stays so across exec: two by Python, more under nohup or in the background.
    """
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)


def drop_root() -> None:
    """Become the job's user for good: no group, no capability in any set."""
    for capability in CAPABILITIES:
        check(LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
    os.setgroups([])
    os.setresgid(USER_ID, USER_ID, USER_ID)
    os.setresuid(USER_ID, USER_ID, USER_ID)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    check(LIBC.capset(header, (ctypes.c_uint32 * 6)()))


def check(result: int) -> None:
    """Raise what the C library left in `errno`."""
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def replace_with(command: list[str], *, variables: dict[str, str]) -> None:
    """Execute the command; a missing or unusable one exits with 127 or 126, like in a shell."""
    try:
        os.execvpe(command[0], command, variables)
    except OSError as error:
        if error.errno in FAULTS_OF_THE_MACHINE:
            raise
        is_missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        os.write(2, os.fsencode(f"{command[0]}: {error.strerror}\n"))
        os._exit(127 if is_missing else 126)


def wait_for(child: int) -> int:
    """Reap whatever ends until the child does; return its wait status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def kill_the_rest() -> None:
    """Kill what the command has left, as its user, and wait until it is gone."""
    if os.getuid() == 0:
        drop_root()
    try:
        os.kill(-1, signal.SIGKILL)
        while True:
            os.wait()
    except (ProcessLookupError, ChildProcessError):
        return


def collect(path: str, most_bytes: int, *, into: int) -> int:
    """Send the content of a file; return its size, -1 for no regular file or a larger one."""
    data = content(path, most_bytes)
    left = memoryview(data or b"")
    while left:
        left = left[os.write(into, left) :]
    return -1 if data is None else len(data)


def content(path: str, most_bytes: int) -> "bytes | None":
    """Return what is in a file; nothing of no regular file, or a larger one."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as file:
        data = file.read(most_bytes + 1)
    return data if len(data) <= most_bytes else None


def used_bytes() -> int:
    """Return what the job has left in folders that vanish: it may end before anybody looks."""
    found = [os.statvfs(folder) for folder in VOLUMES]
    return sum(
        (it.f_blocks - it.f_bfree) * it.f_frsize + (it.f_files - it.f_ffree) * INODE_BYTES
        for it in found
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
