"""Unit costs: what one probe, one comparison, one match, one stored row takes, in seconds."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from weir.errors import QueryError


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """A hop takes `fixed + probe·probes·slices + compare·comparisons + match·matches` seconds.

    `fixed` is paid per hop for every slice that a batch brings (one, if a graph has no basic windows), `out`
    per value of a result at the root, `insert` and `delete` per row of a state. Beside these, which papers
    count, our kernel pays for what follows them here.
    """

    fixed: float = 0.0
    probe: float = 0.0
    compare: float = 0.0
    match: float = 0.0
    out: float = 0.0
    insert: float = 0.0
    delete: float = 0.0
    # Looking into one slice, however few rows probe it: with a few thousand rows a second, most of a batch.
    visit: float = 0.0
    # Taking one column of the matches out of one slice, however few they are.
    gather: float = 0.0
    # What a probe and slice take more where a range of values is searched instead of a key.
    seek: float = 0.0
    # Making one new slice out of rows that came or were joined, and merging it into those that are there.
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

    @staticmethod
    def per_probe(probe: float) -> UnitCosts:
        """Every half-way join counts the same, nothing else does (Mukherji et al. 2011, section 2)."""
        return UnitCosts(probe=probe)

    @staticmethod
    def per_comparison(compare: float) -> UnitCosts:
        """Every compared pair counts (Gedik et al. 2007; Wang and Rundensteiner 2009)."""
        return UnitCosts(compare=compare)
