"""Try every cheap way out of the sandbox at once; print what was reached as one line of JSON.

Standard input holds what to try, by way; see `Targets` in `pipeline/probe/fetches.py`.
"""

import glob
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import urllib.request

TIMEOUT_S = 1.5
LOOPBACK = ("127.0.0.1", "::1")
# A program and its arguments; what is not installed cannot fetch.
PROGRAMS = {
    "pip": [sys.executable, "-m", "pip", "download", "--no-deps", "--retries", "0", "-q"],
    "uv": ["uv", "pip", "install", "-q", "--target", tempfile.gettempdir()],
    "git": ["git", "ls-remote"],
    "curl": ["curl", "-fsS", "--max-time", "1"],
    "wget": ["wget", "-q", "-T", "1", "-t", "1", "-O", "-"],
}


def look_up(name):
    return socket.getaddrinfo(name, 443)[0][4][0]


def connect(host, port):
    with socket.create_connection((host, port), TIMEOUT_S):
        return "%s:%s accepts connections" % (host, port)


def ask_a_name_server(address):
    """Send a question for the root's name servers; any answer is one."""
    question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(TIMEOUT_S)
        asking.sendto(question, (address, 53))
        return "%d bytes" % len(asking.recv(512))


def get(url):
    opener = urllib.request.build_opener()
    with opener.open(url, timeout=TIMEOUT_S) as answer:
        return "status %s" % answer.status


def fetch_with(command, target):
    status, _ = output_of([*command, target])
    if status:
        raise OSError("status %d" % status)
    return "status 0"


def output_of(command):
    done = subprocess.run(
        command, check=False, timeout=3 * TIMEOUT_S, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def open_unix(path):
    with socket.socket(socket.AF_UNIX) as opened:
        opened.settimeout(TIMEOUT_S)
        opened.connect(path)
        return "somebody listens"


def table_of(name):
    """Return the rows of a table of the kernel, without its head."""
    try:
        with open("/proc/net/" + name) as file:
            return [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []


def listeners():
    """Return the ports of this machine that something listens at."""
    rows = table_of("tcp") + table_of("tcp6")
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"}


def is_socket(path):
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def sockets(folders):
    """Return the paths of sockets in folders, two levels deep, and the abstract ones."""
    places = [os.path.join(folder, deep) for folder in folders for deep in ("*", "*/*")]
    found = {path for place in places for path in glob.glob(place) if is_socket(path)}
    names = {row[-1] for row in table_of("unix")}
    return found | {"\0" + name[1:] for name in names if name.startswith("@")}


def interfaces():
    """Fail unless the machine has another network interface than its loopback."""
    with open("/proc/net/dev") as file:
        names = {line.partition(":")[0].strip() for line in file.readlines()[2:]}
    if names <= {"lo"}:
        raise OSError("none")
    return ", ".join(sorted(names - {"lo"}))


def proxies():
    """Fail unless the environment or a file of settings names a proxy or an index."""
    found = sorted(name for name in os.environ if name.lower().endswith("_proxy"))
    found += sorted(name for name in os.environ if name.startswith(("PIP_", "UV_")))
    home = os.path.expanduser("~")
    files = ("/etc/pip.conf", home + "/.pip/pip.conf", home + "/.config/pip/pip.conf")
    # Not /etc/resolv.conf: every container has one, and what it names is asked by other tries.
    files += ("/etc/gitconfig", home + "/.gitconfig", home + "/.netrc")
    found += [path for path in files if os.path.exists(path)]
    if not found:
        raise OSError("none")
    return ", ".join(found)


def remote():
    """Fail unless the work tree knows where it came from."""
    status, output = output_of(["git", "remote", "-v"])
    if status or not output.strip():
        raise OSError("none")
    return output.split()[1]


def tries(asked):
    """Yield (way, target, function, arguments) of all that is worth a try."""
    yield "interface", "/proc/net/dev", interfaces, ()
    yield "proxy", "environment", proxies, ()
    yield "git remote", "work tree", remote, ()
    simple = (("name", look_up), ("name server", ask_a_name_server), ("url", get))
    for way, function in simple:
        for target in asked[way]:
            yield way, target, function, (target,)
    for host, port in asked["address"]:
        yield "address", "%s:%d" % (host, port), connect, (host, port)
    for name, target in asked["program"]:
        yield name, target, fetch_with, (PROGRAMS[name], target)
    yield from tries_at_home(asked)


def tries_at_home(asked):
    """Yield what to try of the machine itself."""
    for port in sorted({*asked["loopback"], *listeners()}):
        for host in LOOPBACK:
            yield "loopback", "%s:%d" % (host, port), connect, (host, port)
    for path in sorted(sockets(asked["socket"])):
        yield "socket", path.replace("\0", "@"), open_unix, (path,)


def main():
    asked = json.load(sys.stdin)
    reached, threads = [], []

    def attempt(way, target, function, arguments):
        try:
            detail = function(*arguments)
        except Exception:
            return
        reached.append([way, target, str(detail)[:200]])

    for one in tries(asked):
        thread = threading.Thread(target=attempt, args=one, daemon=True)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join(4 * TIMEOUT_S)
    late = sum(thread.is_alive() for thread in threads)
    answer = {"num_tries": len(threads), "num_late": late, "reached": sorted(reached)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    # Threads that are late do not hold up the end.
    os._exit(0)


main()
