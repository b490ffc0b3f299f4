"""Run jobs for a host that is at the other end of two pipes, as the first process of a sandbox.

As the first process of its namespace nothing inside can kill it, it adopts what jobs leave behind,
and it alone knows their exact exit status. When the host goes away, it ends, and all with it. Only
the standard library, and few modules of it.

It speaks frames: one byte of kind, four of length (big-endian), the payload.

From the host, for each job: `P` a plan (JSON: `command`, `variables`, `workdir`, `limits`,
`folders`, `collect`, `preload`, `last`); for each of its folders `F` a listing (JSON) and `B` its
files' content; `I` standard input; `G` go.
To the host: `R` ready for a job (JSON: `doubts`); `O` output; `X` results; for each folder to be
given back `W` a listing and `B` content; `C` the collected file; `E` the end (JSON: see `report`;
`failed` says why there is none).

The arguments are folders to hand over to the job's user, when it starts as root.
"""

import json
import os
import selectors
import signal
import sys

# An isolated interpreter does not look there.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import launch
import serve_folders
import serve_job
import serve_run
import serve_traces
import serve_watch
import serve_zygote

CHUNK_BYTES = 2**20
# Where a job can write, besides its folders.
TEMPORARY = ("/tmp", "/home/regrow", "/dev/shm")


class Host:
    """The two pipes to the host."""

    fd, events = 0, selectors.EVENT_READ

    def __init__(self):
        self.rest = memoryview(b"")  # of a frame with content

    def move(self):
        """End: while a job runs the host has nothing to say, so it is gone."""
        os._exit(0)

    def receive(self):
        """Return kind and payload of the next frame; end when the host is gone."""
        head = self.read(5)
        return head[:1], self.read(int.from_bytes(head[1:], "big"))

    def read(self, size):
        parts = []
        while size:
            part = os.read(0, min(size, 2**20))
            if not part:
                os._exit(0)  # the namespace ends with us
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def expect(self, kind):
        found, payload = self.receive()
        if found != kind:
            raise OSError("expected a frame %r, got %r" % (kind, found))
        return payload

    def take(self, size):
        """Return content: at least one byte, at most so many."""
        while not self.rest:
            self.rest = memoryview(self.expect(b"B"))
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def send(self, kind, payload):
        data = kind + len(payload).to_bytes(4, "big") + payload
        try:
            serve_folders.write_all(1, data)
        except BrokenPipeError:
            os._exit(0)

    def send_content(self, payload):
        self.send(b"B", payload)

    def send_json(self, kind, message):
        self.send(kind, json.dumps(message).encode())


class Server:
    """What lasts from job to job."""

    def __init__(self, host):
        self.host = host
        self.umask = os.umask(0)  # listings say it all
        self.children = serve_job.Children()
        self.zygote = None
        self.traces = None
        self.blobs = {}  # contents that the host has sent with a name, and will not send again

    def serve(self):
        """Run one job and make ready for the next."""
        plan = json.loads(self.host.expect(b"P"))
        plan["umask"] = self.umask
        try:
            report = self.run(plan)
        except Exception as error:
            self.host.send_json(b"E", {"failed": str(error) or type(error).__name__})
            os._exit(1)
        self.host.send_json(b"E", report)
        if plan["last"]:
            os._exit(0)
        self.host.send_json(b"R", {"doubts": self.doubts(report)})

    def run(self, plan):
        targets = [folder["target"] for folder in plan["folders"]]
        if self.traces is None:
            self.traces = serve_traces.Traces(TEMPORARY, targets)
        marks = [self.lay_out(folder) for folder in plan["folders"]]
        stdin = self.standard_input()
        if plan["preload"] and self.zygote is None:
            self.zygote = serve_zygote.Zygote(plan, writable=self.traces.places)
            self.children.keep = self.zygote.pid
        ours = (1, self.children.keep)
        watch = serve_watch.Watch(plan["limits"], volumes=self.traces.places, ours=ours)
        run = serve_run.Run(plan, self.host, self.children, watch)
        start = self.zygote.fork if self.zygote else serve_job.start
        limit = run.until_the_end(start, stdin)
        room = plan["limits"]["disk_bytes"] + watch.before_bytes
        limit = self.give_back(plan, marks, room) or limit
        return self.report(plan, run, limit)

    def lay_out(self, folder):
        """Fill a folder; return what tells its files from changed ones, if that will be asked."""
        entries = json.loads(self.host.expect(b"F"))
        serve_folders.lay_out(folder["target"], entries, self.host.take, self.blobs)
        return serve_folders.marks(folder["target"], entries) if folder["mode"] == "write" else {}

    def standard_input(self):
        parts = []
        while True:
            kind, payload = self.host.receive()
            if kind == b"G":
                return b"".join(parts)
            parts.append(payload)

    def give_back(self, plan, marks, room):
        """Send the folders whose writes stay; return `disk` for one that cannot be sent."""
        for number, folder in enumerate(plan["folders"]):
            if folder["mode"] == "write":
                target = folder["target"]
                try:
                    entries = list(serve_folders.listing(target, marks[number]))
                except (OSError, RecursionError):
                    return "disk"
                if sum(entry[3] for entry in entries) > room:  # it pretends to be larger than it is
                    return "disk"
                self.host.send_json(b"W", {"folder": number, "entries": entries})
                serve_folders.send_files(target, entries, self.host.send_content)
        return ""

    def report(self, plan, run, limit):
        collected = None
        if plan["collect"] and not limit:
            collected = launch.content(plan["collect"], plan["limits"]["results_bytes"])
        if collected is not None:
            for at in range(0, len(collected), CHUNK_BYTES):
                self.host.send(b"C", collected[at : at + CHUNK_BYTES])
        return {
            "exit_code": -signal.SIGKILL if limit else run.exit_code(),
            "limit": limit or None,
            "cpu_s": self.children.cpu_s,
            "peak_memory_bytes": run.watch.peak_memory_bytes,
            "peak_processes": run.watch.peak_processes,
            "collected": None if collected is None else len(collected),
            "doubts": run.watch.doubts() + ([] if run.is_spared else ["processes would not die"]),
            "failed": "",
        }

    def doubts(self, report):
        """Remove what the job has left; say what makes another one here unwise."""
        if report["limit"] or report["doubts"]:
            return [report["limit"], *report["doubts"]]
        if self.zygote and not self.zygote.is_sound():
            return ["the zygote is not what it was"]
        return self.traces.remove()


def main(folders):
    if os.getpid() != 1:  # we kill all that we may kill
        sys.exit("expected to be the first process of a namespace")
    while os.dup(2) < launch.RESULTS_FD:  # a job's numbers are not for us
        pass
    launch.prepare(folders)
    if os.getuid() == 0:
        launch.drop_root()
    server = Server(Host())
    server.host.send_json(b"R", {"doubts": []})
    while True:
        server.serve()


if __name__ == "__main__":
    main(sys.argv[1:])
