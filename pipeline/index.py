"""Find and download pinned sdists in a package index (PEP 503, PEP 691)."""

import functools
import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from html.parser import HTMLParser
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import InvalidVersion, Version

from pipeline.task.files import write_whole
from pipeline.task.origin import Source
from pipeline.task.reject import Reject

TIMEOUT_S = 30.0
# Between the tries.
PAUSES_S = (0.2, 1.0)
MAX_BYTES = 2**30
RETRIED = frozenset({408, 429, 500, 502, 503, 504})
# No answer (`urllib.error.URLError` is an OSError), or none that an index would give.
UNREACHABLE = (OSError, HTTPException, ValueError, KeyError)

ACCEPT = (
    "application/vnd.pypi.simple.v1+json, "
    "application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
)
# pip alone knows its settings and its default; its parser has both, and no public function does.
ASK_PIP = (
    "from pip._internal.commands import create_command as c;"
    "print(c('download').parser.get_default_values().index_url)"
)


class IndexUnreachableError(RuntimeError):
    """The package index did not answer, which says nothing about any Repo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """One file that an index offers.

    Example: `IndexFile(name="toolz-1.2.0.tar.gz", url="https://…", sha256="9667a0…", …)`.
    """

    name: str
    # Absolute.
    url: str
    # Empty when the index does not say.
    sha256: str
    # ISO date of the upload; empty when the index does not say.
    uploaded: str


def package_index() -> str:
    """Return the URL of the package index that pip is configured to use.

    Raises:
        IndexUnreachableError: neither `PIP_INDEX_URL` nor a pip of this interpreter tells.
    """
    stated = os.environ.get("PIP_INDEX_URL")
    if stated:
        return stated
    return _pip_index()


@functools.cache
def _pip_index() -> str:
    asked = subprocess.run(
        [sys.executable, "-c", ASK_PIP], capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        raise IndexUnreachableError(
            "no package index: set PIP_INDEX_URL, or install pip, whose settings name one"
        )
    return asked.stdout.strip()


def find_sdist(source: Source, *, index: str) -> IndexFile | Reject:
    """Look a pinned `name==version` up, and take the file with the pinned sha256."""
    sdists = list_sdists(source.location, index=index)
    if isinstance(sdists, Reject):
        return sdists
    pinned = [file for file in sdists if file.sha256 in {source.pin, ""}]
    if pinned:
        return pinned[0]
    found = ", ".join(file.sha256 for file in sdists)
    return _reject("wrong_hash", f"{source.location}: found {found}, expected {source.pin}")


def list_sdists(location: str, *, index: str) -> list[IndexFile] | Reject:
    """Return the sdists of a `name==version`, at least one."""
    name, _, version = location.partition("==")
    try:
        files = _files(_get(f"{index.rstrip('/')}/{canonicalize_name(name)}/"))
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return _reject("no_such_version", f"{name}: the index has no such project")
        return _reject("unreachable", f"{name}: {error}")
    except UNREACHABLE as error:
        return _reject("unreachable", f"{name}: {error}")
    sdists = [file for file in files if _is_sdist_of(file.name, name, version)]
    return sdists or _reject("no_such_version", f"{location}: the index has no sdist of it")


def download(file: IndexFile, *, pin: str, folder: Path) -> Path | Reject:
    """Return the file's path in `folder`, downloaded unless it is there, its sha256 checked."""
    path = folder / pin
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == pin:
        return path
    try:
        content = _get(file.url).body
    except UNREACHABLE as error:
        return _reject("unreachable", f"{file.name}: {error}")
    found = hashlib.sha256(content).hexdigest()
    if found != pin:
        return _reject("wrong_hash", f"{file.name}: downloaded {found}, expected {pin}")
    write_whole(path, content)
    return path


@dataclass(frozen=True, slots=True)
class _Answer:
    body: bytes
    content_type: str
    # After redirects: what relative links are relative to.
    url: str


def _get(url: str) -> _Answer:
    """Get a URL; what may be cured by asking again is asked again after each of `PAUSES_S`."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ValueError(f"{url}: expected http or https")
    opener = urllib.request.build_opener()
    opener.addheaders = [("Accept", ACCEPT), ("User-Agent", "regrow")]
    for pause_s in (*PAUSES_S, None):
        try:
            with opener.open(url, timeout=TIMEOUT_S) as response:
                kind = response.headers.get_content_type()
                return _Answer(_body(response), kind, response.url)
        except UNREACHABLE as error:
            is_final = isinstance(error, urllib.error.HTTPError) and error.code not in RETRIED
            if is_final or pause_s is None:
                raise
            time.sleep(pause_s)
    raise AssertionError("the last try returns or raises")


def _body(response: HTTPResponse) -> bytes:
    """Read a body of at most `MAX_BYTES`.

    Raises:
        ConnectionError: it ended before the stated length, which `read` does not mind.
    """
    body = response.read(MAX_BYTES)
    if response.length and len(body) < MAX_BYTES:
        raise ConnectionError(f"{response.url}: {response.length} bytes are missing at the end")
    return body


def _files(page: _Answer) -> list[IndexFile]:
    """Read the files of a project's page, JSON or HTML."""
    if page.content_type.endswith("json"):
        return [_json_file(entry, page.url) for entry in json.loads(page.body)["files"]]
    parser = _Links()
    parser.feed(page.body.decode("utf-8", "replace"))
    return [_linked_file(link, page.url) for link in parser.links]


def _json_file(entry: dict[str, Any], base: str) -> IndexFile:
    return IndexFile(
        name=entry["filename"],
        url=urljoin(base, entry["url"]),
        sha256=entry["hashes"].get("sha256", ""),
        uploaded=(entry.get("upload-time") or "")[:10],
    )


def _linked_file(link: str, base: str) -> IndexFile:
    url, fragment = urldefrag(urljoin(base, link))
    kind, _, digest = fragment.partition("=")
    return IndexFile(
        name=unquote(urlsplit(url).path.rpartition("/")[2]),
        url=url,
        sha256=digest if kind == "sha256" else "",
        uploaded="",
    )


class _Links(HTMLParser):
    """Collect the targets of the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep `href` of each `<a>`."""
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]


def _is_sdist_of(file: str, name: str, version: str) -> bool:
    try:
        return parse_sdist_filename(file) == (canonicalize_name(name), Version(version))
    except (InvalidSdistFilename, InvalidVersion):
        return False


def _reject(reason: str, detail: str) -> Reject:
    return Reject(stage="fetch", reason=reason, detail=detail)
