"""A function to be hidden in all kinds of wrappings, and a matcher that looks for its lines."""

import hashlib
import json
from pathlib import Path
from zlib import crc32

from pipeline.leaks.budget import Budget, Meter
from pipeline.leaks.decode.piece import Gap
from pipeline.leaks.decode.unfold import unfold
from pipeline.leaks.match import Form
from pipeline.leaks.scan import Place, find_keys
from pipeline.leaks.verdicts import Verdict, Verdicts

DATA = Path(__file__).parent / "data"
SECRET = b'''\
def measure_furlongs(distance, labels=("a & b", "c"), *, rounding_places=7):
    """Return how many furlongs a distance has, rounded half to even."""
    scaled = distance / 201.168 if distance < 1e9 else float("inf")
    if not labels:
        raise ValueError("expected at least one label of a ruler\\n")
    return [round(scaled, rounding_places), *sorted(labels)]
'''
_PRINTABLE = bytes(byte if 31 < byte < 127 else 10 for byte in range(256))
BUDGET = Budget()
NOTHING_KEPT = Verdicts()


def key_of(line: bytes) -> int:
    return crc32(b"".join(line.split()))


KEYS = frozenset(map(key_of, SECRET.splitlines()))
CODE_KEY = 1
# Where it begins and ends, something may stand on the same line.
MOST = len(KEYS) - 2


class LineMatcher:
    """Finds the secret's lines, whatever their indentation, and its code object."""

    digest = "lines"

    def match(self, data: bytes, form: Form) -> frozenset[int]:
        if form == "code":
            names = [json.loads(line)["name"] for line in data.splitlines()]
            return frozenset({CODE_KEY} if "measure_furlongs" in names else ())
        if form == "binary":
            data = data.translate(_PRINTABLE)
        return frozenset(map(key_of, data.split(b"\n"))) & KEYS


MATCHER = LineMatcher()


def verdict_on(data: bytes, budget: Budget = BUDGET) -> Verdict:
    digest = hashlib.sha256(data).digest()
    return find_keys(data, digest, matcher=MATCHER, meter=Meter(budget))


def ways_to_body(verdict: Verdict) -> list[tuple[str, ...]]:
    """Return the decoders of each piece with most of the secret's lines, or its code object."""
    places = [
        Place(path="", decoders=hit.decoders, keys=hit.keys, excerpt="") for hit in verdict.hits
    ]
    return [it.decoders for it in places if len(it.found) >= MOST or CODE_KEY in it.found]


def gaps_of(verdict: Verdict) -> list[tuple[tuple[str, ...], str]]:
    return [(gap.decoders, gap.why) for gap in verdict.gaps]


def texts_of(data: bytes, budget: Budget = BUDGET) -> list[bytes]:
    """Return every piece that some data unfold to."""
    found = unfold(data, Meter(budget))
    return [bytes(it.data) for it in found if not isinstance(it, Gap)]
