"""Tar and ar archives are read where they lie."""

import io
import tarfile

import pytest

from tests.pipeline.leaks.planted import SECRET, gaps_of, verdict_on, ways_to_body

LONG = "/".join(["folder"] * 40) + "/a.py"


def tarred(*members: tuple[str, bytes], mode: str = "w", form: int = tarfile.PAX_FORMAT) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode, format=form) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("name", ["pkg/a.py", LONG, "pkg/ä.py"])
def test_every_dialect_is_read_with_long_names(form: int, name: str) -> None:
    if form == tarfile.USTAR_FORMAT and name == LONG:
        name = LONG[-120:]
    verdict = verdict_on(tarred(("empty", b""), ("b", b"pass\n"), (name, SECRET), form=form))
    assert ways_to_body(verdict) == [(f"tar:{name}",)]
    assert verdict.gaps == ()


@pytest.mark.parametrize(("mode", "label"), [("w:gz", "gzip"), ("w:bz2", "bzip2"), ("w:xz", "xz")])
def test_a_compressed_source_archive_is_read(mode: str, label: str) -> None:
    verdict = verdict_on(tarred(("lib-1.0/a.py", SECRET), mode=mode))
    assert ways_to_body(verdict) == [(label, "tar:lib-1.0/a.py")]


def test_an_archive_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    archive = tarred(("a.py", SECRET), ("b.bin", bytes(9000)), form=tarfile.GNU_FORMAT)
    verdict = verdict_on(archive[:4000])
    assert ways_to_body(verdict) == [("tar:a.py",)]
    assert gaps_of(verdict) == [(("tar",), "broken")]


def test_a_size_that_is_no_number_is_told() -> None:
    archive = bytearray(tarred(("a.py", SECRET), ("b.py", SECRET), form=tarfile.GNU_FORMAT))
    archive[1024 + 124 : 1024 + 136] = b"not a number"
    verdict = verdict_on(bytes(archive))
    assert ways_to_body(verdict) == [("tar:a.py",)]
    assert gaps_of(verdict) == [(("tar",), "broken")]


def test_a_member_of_an_ar_archive_is_read() -> None:
    header = b"a.py/           0           0     0     100644  %-10d`\n" % len(SECRET)
    verdict = verdict_on(b"!<arch>\n" + header + SECRET)
    assert ways_to_body(verdict) == [("ar:a.py",)]
    assert gaps_of(verdict_on(b"!<arch>\n" + b"?" * 60)) == [(("ar",), "broken")]
