"""Have one `inside/serve.py` run one job, from the host's side."""

import contextlib
import dataclasses
import json
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol, Self

from pipeline.sandbox import view, wire
from pipeline.sandbox.protocol import Finished, Job, LimitName, Mount, SandboxBrokenError

# Seconds beyond a job's own until we no longer wait for the other end.
_PATIENCE_S = 15.0
_TICK_S = 0.5
# Content of folders that stays in memory on its way.
_SPOOL_BYTES = 2**25
_UNSEEN = {"cpu_s": 0.0, "peak_memory_bytes": 0, "peak_processes": 0}


class Transport(Protocol):
    """The two streams to one `serve.py`, and the power to end it."""

    def send(self, data: bytes) -> None:
        """Send all of it.

        Raises:
            OSError: nobody takes it (any more).
        """

    def recv(self, timeout_s: float) -> bytes | None:
        """Return what has come: empty at the end of all, None when nothing came in time.

        Raises:
            OSError: the connection broke.
        """

    def kill(self) -> None:
        """End it with everything inside; any thread may call it, more than once."""

    def died_of(self) -> LimitName | None:
        """Return the limit of its surroundings that ended it, as far as those say so."""

    def complaint(self) -> str:
        """Return in one line what it said before it ended, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of one job."""

    finished: Finished
    # Whether the other end told how the job ended, or it was concluded from its silence.
    was_told: bool
    # Why the sandbox should run no other job; empty when nothing speaks against it so far.
    doubts: tuple[str, ...] = ()


class Session:
    """One conversation with a `serve.py`, of one job or more.

    Example: `Session(transport).run(job, cache=FileCache(), counts_users=True, is_last=True)`.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._decoder = wire.Decoder()
        self._kept = wire.Kept()

    def wait_until_ready(self) -> tuple[str, ...]:
        """Wait for the word that a job may come; return what speaks against one.

        Raises:
            SandboxBrokenError: it did not come.
        """
        for kind, payload in self._frames(ends_s=time.monotonic() + _PATIENCE_S):
            if kind == b"R":
                return tuple(json.loads(payload)["doubts"])
        raise SandboxBrokenError(f"the sandbox did not start: {self._complaint()}")

    def run(self, job: Job, *, cache: wire.FileCache, counts_users: bool, is_last: bool) -> Reply:
        """Have a job run by a `serve.py` that is ready for one.

        The folders whose writes stay are brought up to date; who owns what is the caller's.

        Args:
            job: its read mounts are there already, the others as empty folders.
            cache: of the files that travel.
            counts_users: whether nobody outside has the job's user, so that the kernel can count.
            is_last: whether no other job follows, so that the sandbox need not be cleaned.

        Raises:
            OSError: a folder of the job cannot be read.
            SandboxBrokenError: the machine, not the job, failed.
        """
        began_s = time.monotonic()
        plan = _plan(job, counts_users=counts_users, is_last=is_last)
        with _Intake(job) as intake:
            kept = None if is_last else self._kept
            self._send(_request(job, cache, kept, plan), intake)
            ends_s = time.monotonic() + job.limits.wall_s + _PATIENCE_S
            for kind, payload in self._frames(ends_s=ends_s):
                if intake.take(kind, payload):
                    return intake.reply(wall_s=time.monotonic() - began_s)
            is_late = time.monotonic() > ends_s
            self._transport.kill()
            limit: LimitName | None = "wall" if is_late else self._transport.died_of()
            if limit is None:
                raise SandboxBrokenError(
                    f"the sandbox was killed from outside: {self._complaint()}"
                )
            return intake.silent_reply(limit, wall_s=time.monotonic() - began_s)

    def _send(self, request: Iterator[bytes], intake: "_Intake") -> None:
        for piece in request:
            try:
                self._transport.send(piece)
            except OSError:
                return  # perhaps it has said why
            intake.note_sent(len(piece))

    def _frames(self, *, ends_s: float) -> Iterator[tuple[bytes, bytes]]:
        """Yield what has come and what comes, until nothing more can, or the time is up."""
        yield from self._decoder.feed(b"")
        while time.monotonic() < ends_s:
            try:
                piece = self._transport.recv(_TICK_S)
            except OSError:
                return
            if piece is not None:
                yield from self._decoder.feed(piece)
                if not piece:
                    return

    def _complaint(self) -> str:
        return self._transport.complaint() or "no word"


def _request(
    job: Job, cache: wire.FileCache, kept: wire.Kept | None, plan: dict[str, object]
) -> Iterator[bytes]:
    """Yield the frames that have a job run."""
    yield wire.json_frame(b"P", plan)
    for mount in _folders(job):
        yield from wire.folder_frames(mount.source, cache, kept)
    for piece in wire.cut(job.stdin):
        yield wire.frame(b"I", piece)
    yield wire.frame(b"G")


def _folders(job: Job) -> list[Mount]:
    return [mount for mount in job.mounts if mount.mode != "read"]


def _plan(job: Job, *, counts_users: bool, is_last: bool) -> dict[str, object]:
    return {
        "command": job.command,
        "variables": {**view.VARIABLES, **dict(job.variables)},
        "workdir": job.workdir,
        "limits": {**dataclasses.asdict(job.limits), "counts_users": counts_users},
        "folders": [{"target": it.target, "mode": it.mode} for it in _folders(job)],
        "collect": job.collect,
        # For a single job it would be as much work to start from a warm interpreter.
        "preload": () if is_last else job.preload,
        "last": is_last,
    }


class _Intake:
    """What the other end says of one job; a context manager."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._folders = _folders(job)
        self._output, self._results, self._collected = bytearray(), bytearray(), bytearray()
        self._stack = contextlib.ExitStack()
        # Folders that are given back: where to, their listing, their content.
        self._given: list[tuple[Mount, list[wire.Entry], IO[bytes]]] = []
        # What the folders brought at most, with what was sent of them.
        self._room = job.limits.disk_bytes + _SPOOL_BYTES
        # The other end's last word.
        self._end: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def note_sent(self, num_bytes: int) -> None:
        """Count what was sent, which may come back."""
        self._room += num_bytes

    def take(self, kind: bytes, payload: bytes) -> bool:
        """Take a frame; return whether it was the last.

        Raises:
            WireError: it is no frame that belongs here, or brings more than it may.
        """
        limits = self._job.limits
        if kind == b"O":
            _append(self._output, payload, limits.output_bytes)
        elif kind == b"X":
            _append(self._results, payload, limits.results_bytes)
        elif kind == b"C":
            _append(self._collected, payload, limits.results_bytes)
        elif kind in {b"W", b"B"}:
            self._take_folder(kind, payload)
        elif kind == b"E":
            self._end = json.loads(payload)
        else:
            raise wire.WireError(f"expected a frame of a running job, got {kind!r}")
        return kind == b"E"

    def _take_folder(self, kind: bytes, payload: bytes) -> None:
        self._room -= len(payload)
        if self._room < 0:
            raise wire.WireError("expected no more of a folder than its job may write")
        if kind == b"B":
            self._given[-1][2].write(payload)
            return
        message = json.loads(payload)
        content = self._stack.enter_context(_spool())
        self._given.append((self._folders[message["folder"]], message["entries"], content))

    def reply(self, *, wall_s: float) -> Reply:
        """Return what the job did, its folders brought up to date.

        Raises:
            SandboxBrokenError: it did not run.
        """
        end = self._end
        assert end is not None
        if end["failed"]:
            raise SandboxBrokenError(f"the sandbox did not start: {end['failed']}")
        for mount, entries, content in self._given:
            content.seek(0)
            wire.take_back(mount.source, entries, content.read)
        return Reply(
            finished=self._finished(end, wall_s=wall_s), was_told=True, doubts=tuple(end["doubts"])
        )

    def silent_reply(self, limit: LimitName, *, wall_s: float) -> Reply:
        """Return what can be told of a job whose end nobody told."""
        end = {"exit_code": -signal.SIGKILL, "limit": limit, "collected": None, **_UNSEEN}
        return Reply(finished=self._finished(end, wall_s=wall_s), was_told=False)

    def _finished(self, end: dict[str, Any], *, wall_s: float) -> Finished:
        return Finished(
            exit_code=end["exit_code"],
            limit=end["limit"],
            output=bytes(self._output),
            results=bytes(self._results),
            cpu_s=end["cpu_s"],
            wall_s=wall_s,
            collected=None if end["collected"] is None else bytes(self._collected),
            peak_memory_bytes=end["peak_memory_bytes"],
            peak_processes=end["peak_processes"],
        )


def _spool() -> "contextlib.AbstractContextManager[IO[bytes]]":
    return tempfile.SpooledTemporaryFile(_SPOOL_BYTES)


def _append(kept: bytearray, payload: bytes, most_bytes: int) -> None:
    kept += payload
    if len(kept) > most_bytes:
        raise wire.WireError(f"expected at most {most_bytes} bytes, got more")
