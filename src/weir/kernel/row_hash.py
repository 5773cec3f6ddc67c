"""Row hashes: numbers computed from the content of rows; a repeated batch samples and sheds the same."""

from __future__ import annotations

import hashlib

import numpy as np

from weir.kernel.keys import Bools, Int64s, combine


def hash_rows(content: Int64s, *purpose: object) -> Int64s:
    """Hash the content hash of each row once more, independently for each purpose."""
    name = "\n".join(map(str, purpose))
    salt = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)
    return combine([np.array([salt]), content])


def select_share(hashes: Int64s, share: float) -> Bools:
    """Select the hashes that, as fractions of 2^64, are below a share."""
    if share >= 1:
        return np.ones(len(hashes), np.bool_)
    selected: Bools = hashes.view(np.uint64) < np.uint64(int(share * 2**64))
    return selected
