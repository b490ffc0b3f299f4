"""The image that all others start from: found, pulled or made, and never with packages."""

import io
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from pipeline.sandbox.docker import debian
from pipeline.sandbox.docker.base import Base, open_base
from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.docker.loading import (
    Entry,
    image_id,
    layer_of,
    layers_of,
    load_image,
    write_layer,
)
from pipeline.sandbox.docker.strip import strip
from pipeline.sandbox.protocol import SandboxUnavailableError
from tests.pipeline.sandbox.conftest import unavailable

VENDORED = "usr/lib/python3/dist-packages/six.py"
BUNDLED = "opt/lib/python3.12/ensurepip/_bundled/pip-25.whl"
PROGRAM = "usr/lib/python3.11/json/__init__.py"


@pytest.fixture
def foreign(engine: Engine, tmp_path: Path) -> Iterator[str]:
    """Return an image such as others make, with packages for all."""
    entries = [
        Entry(path=VENDORED, content=b"answer = 42"),
        Entry(path=BUNDLED, content=b"answer = 42"),
        Entry(path=PROGRAM, content=b"dumps = str"),
        Entry(path="usr/bin/su", content=b"#!/bin/sh", mode=0o4755),
        Entry(path="usr/bin/sh", kind="link", content=b"su", mode=0o777),
    ]
    layer = write_layer(entries, into=tmp_path / "layer.tar")
    architecture = str(engine.api.version()["Arch"])
    image = load_image(
        engine, name="regrow-tests/foreign:", layers=[layer], architecture=architecture, config={}
    )
    yield image
    engine.api.remove_image(image, force=True)


def exported(engine: Engine, base: Base) -> bytes:
    """Return what a container of a base shows as a tar."""
    container = engine.api.create_container(base.image, command=["none"])["Id"]
    try:
        return b"".join(engine.api.export(container))
    finally:
        engine.api.remove_container(container, force=True)


def members(engine: Engine, base: Base) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(exported(engine, base))) as tar:
        return {member.name: member for member in tar}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the files of a base that was just made of Debian packages."""
    if shutil.which("mmdebstrap") is None:
        unavailable("a base of Debian packages needs `mmdebstrap`")
    return make(tmp_path_factory.mktemp("made"))


def make(folder: Path) -> Path:
    debian.make(folder / "made.tar", log=folder / "log")
    assert "success" in (folder / "log").read_text()
    strip(folder / "made.tar", into=folder / "stripped.tar")
    (folder / "made.tar").unlink()
    return folder / "stripped.tar"


def packages_of(tar: IO[bytes]) -> bytes:
    """Return names and versions of all packages of a file system."""
    with tarfile.open(fileobj=tar) as files:
        status = files.extractfile("var/lib/dpkg/status")
        assert status is not None
        return status.read()


def test_a_base_is_made_once(engine: Engine):
    first, second = open_base(engine, name=""), open_base(engine, name="")
    assert second == replace(first, build_s=0.0)
    assert second.size_bytes > 2**20


def test_a_base_runs_python_with_its_libraries(engine: Engine, base: str):
    script = "import ssl, sqlite3, lzma, bz2, ctypes, readline, curses, zlib; print('works')"
    said = engine.client.containers.run(
        base, ["python3", "-I", "-c", script], network_mode="none", remove=True
    )
    assert said == b"works\n"


def test_a_base_of_debian_packages_has_no_packages_of_python(made: Path):
    with tarfile.open(made) as tar:
        names = tar.getnames()
    assert not [it for it in names if it.endswith(".whl") or "-packages/" in it]
    assert not [it for it in names if it.startswith(("var/lib/apt/", "etc/apt/", "usr/share/doc/"))]
    assert {"usr/bin/git", "usr/bin/python3", "etc/ssl/certs/ca-certificates.crt"} <= {*names}


def test_the_same_debian_packages_give_the_same_bytes(engine: Engine, made: Path, tmp_path: Path):
    kept = open_base(engine, name="")
    (tmp_path / "kept.tar").write_bytes(exported(engine, kept))
    with made.open("rb") as ours, (tmp_path / "kept.tar").open("rb") as theirs:
        is_as_old = kept.how == "made" and packages_of(ours) == packages_of(theirs)
    # Where the archive has moved on since, only what is made now can be compared.
    layers = layers_of(engine, kept.image) if is_as_old else (layer_of(make(tmp_path)),)
    assert [it.diff_id for it in layers] == [layer_of(made).diff_id]


@pytest.mark.usefixtures("made")
def test_a_base_that_cannot_be_made_is_said_so_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Nobody listens there.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    log = tmp_path / "log"
    with pytest.raises(SandboxUnavailableError) as caught:
        debian.make(tmp_path / "made.tar", log=log)
    message = str(caught.value)
    assert message.startswith("no base image: mmdebstrap ended with ")
    assert message.endswith(f"the whole log is in {log}")
    assert log.read_text().splitlines()[-1] in message
    assert "\n" not in message


def test_a_machine_without_the_tool_is_told_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match=r"install it .* REGROW_DOCKER_BASE"):
        debian.make(tmp_path / "made.tar", log=tmp_path / "log")


def test_a_named_base_is_taken_and_stripped(engine: Engine, foreign: str):
    base = open_base(engine, name=foreign)
    try:
        assert base.how == "named"
        names = members(engine, base)
        assert VENDORED not in names
        assert BUNDLED not in names
        assert PROGRAM in names
        assert names["usr/bin/su"].mode & 0o7777 == 0o755
        assert names["usr/bin/sh"].linkname == "su"
        # The name of what was stripped before is good as well.
        assert open_base(engine, name=base.tag).image == base.image
        assert open_base(engine, name=foreign) == replace(base, build_s=0.0)
    finally:
        engine.api.remove_image(base.image, force=True)


def test_the_variable_names_a_base(engine: Engine, foreign: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REGROW_DOCKER_BASE", foreign)
    base = open_base(engine)
    try:
        assert base.how == "named"
    finally:
        engine.api.remove_image(base.image, force=True)


def test_a_base_is_the_same_bytes_each_time(engine: Engine, foreign: str):
    first = open_base(engine, name=foreign)
    engine.api.remove_image(first.image, force=True)
    assert not image_id(engine, first.tag)
    second = open_base(engine, name=foreign)
    engine.api.remove_image(second.image, force=True)
    assert (first.image, first.tag) == (second.image, second.tag)


@pytest.mark.parametrize("name", ["regrow-tests/nowhere:1", "regrow-tests/nowhere"])
def test_a_named_base_that_is_nowhere_is_said_so_in_a_line(engine: Engine, name: str):
    with pytest.raises(SandboxUnavailableError) as caught:
        open_base(engine, name=name)
    message = str(caught.value)
    assert f"has no image {name!r}" in message
    assert engine.address in message
    assert "REGROW_DOCKER_BASE" in message
    assert "\n" not in message


def test_a_name_that_no_image_can_have_is_said_so_in_a_line(engine: Engine):
    with pytest.raises(SandboxUnavailableError, match="no name of an image"):
        open_base(engine, name="No::name")
