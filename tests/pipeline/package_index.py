"""A package index on the loopback interface, and the small packages that it serves."""

import contextlib
import functools
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JSON = "application/vnd.pypi.simple.v1+json"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sdist(files: dict[str, str], *, top: str = "tiny-1.0", mtime: int = 1_700_000_000) -> bytes:
    """Pack files under one top folder; the same bytes at every call."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mtime = len(text.encode()), mtime
            tar.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(raw.getvalue(), mtime=0)


def wheel(
    name: str,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    source: str = "",
    more: dict[str, str] | None = None,
) -> bytes:
    """Build a wheel of one module, and more files."""
    info = f"{name}-{version}.dist-info"
    headers = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {r}" for r in requires)]
    files = {
        f"{name}.py": source,
        **(more or {}),
        f"{info}/METADATA": "\n".join(["Metadata-Version: 2.1", *headers, ""]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for file, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(file, (2020, 1, 1, 0, 0, 0)), text)
    return raw.getvalue()


@dataclass(frozen=True)
class Offer:
    """One file of the index."""

    name: str
    data: bytes
    # ISO time, or empty for an index that does not say.
    uploaded: str = "2024-05-06T07:08:09Z"
    # Stated instead of the true sha256.
    claimed: str = ""
    # Bytes at the end that are never sent.
    missing: int = 0

    @property
    def project(self) -> str:
        return self.name.partition("-")[0]

    @property
    def sha256(self) -> str:
        return self.claimed or sha256(self.data)


@contextlib.contextmanager
def serve(*offers: Offer, html: bool = False) -> Iterator[str]:
    """Serve files until the block ends; yield the index's URL."""
    with _served(functools.partial(_Handler, offers, _html if html else _json)) as url:
        yield url


@contextlib.contextmanager
def refuse(status: int) -> Iterator[str]:
    """Answer everything with one HTTP status until the block ends; yield the index's URL."""
    with _served(functools.partial(_Refusing, status)) as url:
        yield url


@contextlib.contextmanager
def _served(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple"
        finally:
            server.shutdown()
            thread.join()


# Renders a project's files; returns the page and its type.
Page = Callable[[list[Offer]], tuple[bytes, str]]


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, offers: tuple[Offer, ...], page: Page, *args: Any) -> None:
        self.offers, self.page = offers, page
        super().__init__(*args)

    def do_GET(self) -> None:
        last = self.path.strip("/").rpartition("/")[2]
        files = [offer for offer in self.offers if offer.name == last]
        project = [offer for offer in self.offers if offer.project == last]
        if files:
            self._answer(files[0].data, "application/octet-stream", missing=files[0].missing)
        elif project:
            self._answer(*self.page(project))
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        """Tell uv that ranges of wheels are not served."""
        self.do_GET()

    def _answer(self, data: bytes, kind: str, *, missing: int = 0) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[: len(data) - missing])

    def log_message(self, *_: object) -> None:
        """Say nothing on standard error."""


class _Refusing(http.server.BaseHTTPRequestHandler):
    def __init__(self, status: int, *args: Any) -> None:
        self.status = status
        super().__init__(*args)

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing on standard error."""


def _json(offers: list[Offer]) -> tuple[bytes, str]:
    files = [
        {
            "filename": offer.name,
            "url": f"../../files/{offer.name}",
            "hashes": {"sha256": offer.sha256},
            **({"upload-time": offer.uploaded} if offer.uploaded else {}),
        }
        for offer in offers
    ]
    return json.dumps({
        "meta": {"api-version": "1.1"},
        "name": offers[0].project,
        "files": files,
    }).encode(), JSON


def _html(offers: list[Offer]) -> tuple[bytes, str]:
    links = (f'<a href="/files/{o.name}#sha256={o.sha256}">{o.name}</a>' for o in offers)
    return f"<html><body>{''.join(links)}</body></html>".encode(), "text/html"


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    """Write files below a folder and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
