"""Spell records in one way, so that equal ones have equal digests."""

import dataclasses
import hashlib
import json


def canonical_json(value: object) -> str:
    """Render records, tuples, dicts and scalars as JSON with one spelling."""
    plain = (
        dataclasses.asdict(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type)
        else value
    )
    return json.dumps(
        plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=dataclasses.asdict
    )


def content_id(*parts: object) -> str:
    """Return the sha256 (hex) of the parts' canonical JSON."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(canonical_json(part).encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
