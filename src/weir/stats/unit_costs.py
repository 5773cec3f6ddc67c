"""Unit costs: seconds per probe, per comparison, per match, per stored row and so on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from weir.errors import QueryError


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """A hop takes `fixed + probe·probes·slices + compare·comparisons + match·matches` seconds.

    `fixed` is paid per hop for every new slice of a batch (one, if a graph has no cells), `out` per
    value of a result at the root, `insert` and `delete` per row of a state. The papers count these; weir's
    kernel also pays for the rest.
    """

    fixed: float = 0.0
    probe: float = 0.0
    compare: float = 0.0
    match: float = 0.0
    out: float = 0.0
    insert: float = 0.0
    delete: float = 0.0
    # Opening one slice, however few rows probe it: at a few thousand rows per second, most of a batch.
    visit: float = 0.0
    # Gathering one column of the matches from one slice, however few matches there are.
    gather: float = 0.0
    # Added to `probe` where a probe searches a range of values instead of a key.
    seek: float = 0.0
    # Making one new slice out of rows or partials, and merging it into the state.
    cut: float = 0.0
    # Rewriting a row when slices are merged; states of several streams are rewritten in almost every batch.
    merge: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise QueryError(f"the cost '{name}' must be a number of seconds, zero or more; got {value}")

    @staticmethod
    def per_match(join: float, insert: float = 0.0, delete: float = 0.0) -> UnitCosts:
        """The model of qualified plans (Zhu et al. 2010, table 1): C_j a match, C_i and C_d a stored row."""
        return UnitCosts(match=join, insert=insert, delete=delete)


# Rounded seconds of a shared machine of 2026; good enough to compare plans. Matches cost nothing beyond the
# comparisons that find them.
TYPICAL = UnitCosts(
    fixed=1e-4, probe=2e-8, compare=1e-8, out=3e-9, insert=6e-8,
    visit=1.5e-4, gather=8e-6, seek=1e-7, cut=5e-4, merge=3e-8,
)  # fmt: skip
