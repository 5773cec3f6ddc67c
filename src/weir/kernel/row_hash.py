"""Lots: a number for each row, drawn from what it holds, so that a repeated batch draws the same."""

from __future__ import annotations

import hashlib

import numpy as np

from weir.kernel.keys import Bools, Int64s, combine


def row_hashes(content: Int64s, *names: object) -> Int64s:
    """A lot for each row: a hash of its content, another one for other names."""
    named = "\n".join(map(str, names))
    salt = int.from_bytes(hashlib.blake2b(named.encode(), digest_size=8).digest(), "big", signed=True)
    return combine([np.array([salt]), content])


def hash_limit(drawn: Int64s, share: float) -> Bools:
    """Which lots, as fractions of 2^64, are below a share."""
    if share >= 1:
        return np.ones(len(drawn), np.bool_)
    under: Bools = drawn.view(np.uint64) < np.uint64(int(share * 2**64))
    return under
