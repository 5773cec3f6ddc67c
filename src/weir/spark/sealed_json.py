"""Sealed JSON: a body with its checksum, by which damage is noticed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any


def seal(body: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file with a body.

    >>> unseal(seal({"batch": 7}))
    {'batch': 7}
    """
    text = json.dumps(body)
    return json.dumps({"checksum": zlib.crc32(text.encode()), "body": text}).encode()


def unseal(data: bytes) -> dict[str, Any] | None:
    """Return the body of a file; None if it is damaged."""
    try:
        sealed = json.loads(data)
        body: dict[str, Any] = json.loads(sealed["body"])
        is_intact = zlib.crc32(sealed["body"].encode()) == sealed["checksum"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return body if is_intact and isinstance(body, dict) else None
