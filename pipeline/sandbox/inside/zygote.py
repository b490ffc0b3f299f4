"""Import a test runner once, then fork a process for each job that is as good as a new one.

A fork is told from a new process by nothing that a suite looks at: descriptors, signals, limits,
variables, `sys.argv`, `sys.path`, `__main__`, the seed of `random`, the modules there are. What
this file itself needs is taken out of `sys.modules` before anything is imported for the job.

The argument is the descriptor of a socket. The first message brings what to import, and the
folders that jobs write to; the answer is empty, or says why no fork would be as good as new. Each
further message brings four descriptors and what to run; the fork answers with its pid and what
went wrong, if anything did. None is answered at once. Messages are of `marshal`.
"""

import sys

FOUND = set(sys.modules)

import _socket  # noqa: E402  what a new process has must be known before
import ctypes  # noqa: E402
import gc  # noqa: E402
import marshal  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402

for name in set(sys.modules) - FOUND:
    del sys.modules[name]

MESSAGE_BYTES = 2**20
DESCRIPTORS_BYTES = 4 * 4
# The descriptors that a job has.
NUM_OPEN = 4
MAX_OPEN_FILES = 1024
# Of `linux/prctl.h`.
PR_SET_DUMPABLE = 4
PRCTL = ctypes.CDLL(None).prctl


def main(hub):
    """Serve until a fork is to run a script; return its path there, and what `keep_codes` kept."""
    PRCTL(PR_SET_DUMPABLE, 0, 0, 0, 0)  # no job may look into us
    modules, folders = load(hub.recv(MESSAGE_BYTES))
    if not is_safe_path():
        sys.path.pop(0)
    import_all(modules)
    say(hub, unfit(folders))
    known = promised_folders()
    codes = {}
    gc.collect()
    gc.freeze()  # else the first collection in each fork would touch, and so copy, all we have
    while True:
        request, descriptors = receive(hub)
        if request is None:
            say(hub, "")
            continue
        script = request["command"][1]
        keep_codes(script, codes, folders)
        if is_the_fork(descriptors):
            become(request, descriptors, hub, known)
            return script, codes


def say(hub, message):
    hub.send(marshal.dumps(message, 2))  # a version that every interpreter reads


def load(data):
    return marshal.loads(data)  # noqa: S302  from the process that started us


def is_safe_path():
    """Return whether this interpreter puts no folder of a script on its path."""
    return getattr(sys.flags, "safe_path", False)


def import_all(modules):
    for module in modules:
        try:
            __import__(module)
        except Exception:  # noqa: S112  then the job imports it, or fails of it, on its own
            continue


def unfit(folders):
    """Say why forks would share what is a job's own; else return the empty text."""
    places = tuple(folder + "/" for folder in folders)
    for name, module in list(sys.modules.items()):
        paths = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or ())]
        for path in paths:
            if isinstance(path, str) and path.startswith(places):
                return "%s comes from %s" % (name, path)
    return ""


def promised_folders():
    """Return which of the folders that `.pth` files name are there; `sys.path` holds those."""
    sites = [folder for folder in sys.path if folder.endswith("-packages")]
    return [
        (path, os.path.exists(path))
        for site in sites
        if os.path.isdir(site)
        for name in sorted(os.listdir(site))
        if name.endswith(".pth")
        for path in named_folders(site, name)
    ]


def named_folders(site, name):
    with open(os.path.join(site, name), encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file]
    kept = [line for line in lines if line and not line.startswith(("#", "import"))]
    return [os.path.join(site, line) for line in kept]


def keep_codes(script, codes, folders):
    """Compile a script, and those beside it, once for all forks: jobs cannot change them."""
    folder = os.path.dirname(script)
    if script in codes or (folder + "/").startswith(tuple(it + "/" for it in folders)):
        return
    for name in os.listdir(folder):
        if name.endswith(".py"):
            path = os.path.join(folder, name)
            try:
                codes[path] = code_of(path)
            except (OSError, SyntaxError, ValueError):
                continue  # the fork says so
    gc.freeze()


def receive(hub):
    """Return the next request and its descriptors; nothing of both for the empty message."""
    data, extra, _, _ = hub.recvmsg(MESSAGE_BYTES, _socket.CMSG_SPACE(DESCRIPTORS_BYTES))
    if not data:
        sys.exit()  # nobody is there any more
    numbers = b"".join(item[2] for item in extra)
    places = range(0, len(numbers), 4)
    return load(data), [int.from_bytes(numbers[at : at + 4], sys.byteorder) for at in places]


def is_the_fork(descriptors):
    """Fork twice, so that the first process adopts the fork; tell the two apart."""
    child = os.fork()
    if child:
        for fd in descriptors:
            os.close(fd)
        os.waitpid(child, 0)
        return False
    if os.fork():
        os._exit(0)
    return True


def become(request, descriptors, hub, known):
    """Turn into the process that a new interpreter would be just before it runs the script."""
    try:
        check(known)
        for number, fd in enumerate(descriptors):
            os.dup2(fd, number)
        os.setpgid(0, request["group"])
        os.chdir(request["workdir"])
        for kind, most in request["limits"]:
            resource.setrlimit(kind, (most, most))
        PRCTL(PR_SET_DUMPABLE, 1, 0, 0, 0)
        reset(request["command"])
        say(hub, (os.getpid(), ""))
    except BaseException as error:
        say(hub, (os.getpid(), str(error) or type(error).__name__))
        os._exit(1)
    hub.close()
    os.closerange(NUM_OPEN, MAX_OPEN_FILES)


def check(known):
    if promised_folders() != known:
        raise OSError("other folders of the tree are on the path than at first")


def reset(command):
    """Give the interpreter the state that depends on the script."""
    sys.argv[:] = command[1:]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = command
    if not is_safe_path():
        sys.path.insert(0, os.path.dirname(os.path.realpath(command[1])))
    sys.path_importer_cache.clear()
    if "importlib.metadata" in sys.modules:  # else there is nothing, and this would import it
        sys.modules["importlib"].invalidate_caches()


def fresh_main(path):
    """Return a module `__main__` as a new interpreter makes it for a script."""
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader
    module = type(sys)("__main__")
    module.__dict__.update(
        __annotations__={},
        __builtins__=sys.modules["builtins"],
        __cached__=None,
        __file__=path,
        __loader__=loader("__main__", path),
    )
    sys.modules["__main__"] = module
    return module


def code_of(path):
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


if __name__ == "__main__":
    ORIGINAL = sys.modules["__main__"]  # whose names we go on using
    SCRIPT, CODES = main(_socket.socket(fileno=int(sys.argv[1])))
    MAIN = fresh_main(SCRIPT)
    if SCRIPT in CODES:
        MAIN.__codes__ = CODES  # the script's to use, and to remove
    try:
        exec(CODES.get(SCRIPT) or code_of(SCRIPT), MAIN.__dict__)  # noqa: S102  what we are for
    except Exception as error:
        error.__traceback__ = error.__traceback__.tb_next  # without this frame
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)
