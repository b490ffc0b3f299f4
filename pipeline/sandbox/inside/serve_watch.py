"""Look around in a sandbox from inside, as its first process, for what a job uses.

The plain twin of this looks in from outside; here nobody can: the engine may be far away.
"""

import os
import time

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What an inode of a tmpfs costs the kernel, however empty the file.
INODE_BYTES = 2**10
# Looking takes at most one part in so many of the time.
REST = 10
# A process may end while it is read, or have closed itself to its own user.
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


class Watch:
    """What one job uses, as far as it was seen."""

    def __init__(self, limits, *, volumes, ours):
        self.limits = limits
        self.volumes = volumes
        self.ours = ours  # pids that are not the job's
        self.before_bytes = volumes_bytes(volumes)
        self.before_kills = num_kills()
        self.next_s = 0.0
        self.peak_memory_bytes = 0
        self.peak_processes = 0

    def exceeded(self, reaped_cpu_s):
        """Return the limit that is exceeded; empty too while a look would cost too much."""
        began_s = time.monotonic()
        if began_s < self.next_s:
            return ""
        limit = self.look(reaped_cpu_s)
        now_s = time.monotonic()
        self.next_s = now_s + REST * (now_s - began_s)
        return limit

    def look(self, cpu_s):
        num_processes, memory_bytes = 0, 0
        others = [pid for pid in pids() if pid not in self.ours]
        for pid in others:
            # proc_pid_stat(5), counted from field 3: user and system time with those of waited-for
            # children, threads, resident pages.
            fields = stat(pid)
            if int(fields[1]) == self.ours[-1]:  # on its way out, its child is the job's
                continue
            cpu_s += sum(map(int, fields[11:15])) / TICKS_PER_S
            num_processes += int(fields[17])
            memory_bytes += int(fields[21]) * PAGE_BYTES
        if memory_bytes > self.limits["memory_bytes"]:
            # Pages that processes share were counted for each: look closely before a verdict.
            memory_bytes = sum(map(proportional_bytes, others))
        self.peak_memory_bytes = max(self.peak_memory_bytes, memory_bytes)
        self.peak_processes = max(self.peak_processes, num_processes)
        return self.verdict(cpu_s, num_processes, memory_bytes)

    def verdict(self, cpu_s, num_processes, memory_bytes):
        if cpu_s > self.limits["cpu_s"]:
            return "cpu"
        if num_processes > self.limits["num_processes"]:
            return "processes"
        if memory_bytes > self.limits["memory_bytes"]:
            return "memory"
        return self.overfilled()

    def overfilled(self):
        written = volumes_bytes(self.volumes) - self.before_bytes
        return "disk" if written > self.limits["disk_bytes"] else ""

    def doubts(self):
        """Return what may have ended the job, and was perhaps another's."""
        return ["the kernel killed for want of memory"] if num_kills() > self.before_kills else []


def pids():
    return listed("/proc")


def listed(folder):
    """Return the names in a folder that are numbers."""
    return [int(name) for name in os.listdir(folder) if name.isdecimal()]


def stat(pid):
    """Return the fields of a process's stat file from the third on; zeros when it is gone."""
    try:
        return read("/proc/%d/stat" % pid).rpartition(b")")[2].split()
    except GONE:
        return [b"0"] * 22


def proportional_bytes(pid):
    """Return the resident memory of a process, its part alone of each shared page."""
    try:
        for line in read("/proc/%d/smaps_rollup" % pid).splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except GONE:
        pass
    return int(stat(pid)[21]) * PAGE_BYTES  # it shares with nobody as far as we may know


def read(path):
    with open(path, "rb", buffering=0) as file:
        return file.read()


def volumes_bytes(folders):
    """Return what is used of the tmpfs that a job can write to, each counted once."""
    by_device = {os.stat(folder).st_dev: folder for folder in folders}
    return sum(map(volume_bytes, by_device.values()))


def volume_bytes(folder):
    found = os.statvfs(folder)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    return used + (found.f_files - found.f_ffree) * INODE_BYTES


def num_kills():
    """Return how often the kernel of this machine has killed for want of memory, ours or not."""
    fields = read("/proc/vmstat").split()
    # Old kernels do not count.
    return int(fields[fields.index(b"oom_kill") + 1]) if b"oom_kill" in fields else 0
