"""What a message carries: real rows, or how many are expected.

The nodes are the same for both. With rows every pair is compared, for small runs whose output is checked;
with counts a probe of `n` tuples into `k` rows yields `n * k * selectivity`, for large ones (the paper, too,
probed by probability).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from weir_lab.ring.stored import Row, Stored

Content = Any
Partial = tuple[Row, ...]


class Matching(Protocol):
    """How tuples are compared, and what they are."""

    def first(self, row: Row) -> Content:
        """What an input row carries when it sets out."""

    def probe(self, content: Content, stored: Stored, low: int, high: int, step: int) -> Content:
        """What comes out of comparing with the rows stored at [low, high)."""

    def size(self, content: Content) -> float:
        """How many tuples these are."""


@dataclass(frozen=True, slots=True)
class Exact:
    """Real rows; `accepts` says whether a row may join what has been matched so far."""

    accepts: Callable[[Partial, Row], bool]

    def first(self, row: Row) -> list[Partial]:
        """The row alone."""
        return [(row,)]

    def probe(self, content: list[Partial], stored: Stored, low: int, high: int, step: int) -> list[Partial]:
        """Every pair, compared."""
        there = stored.between(low, high)
        return [(*partial, row) for partial in content for row in there if self.accepts(partial, row)]

    def size(self, content: list[Partial]) -> float:
        """The partials."""
        return len(content)


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected counts, with the selectivity of each probing step."""

    selectivities: tuple[float, ...]

    def first(self, row: Row) -> float:
        """One tuple."""
        return 1.0

    def probe(self, content: float, stored: Stored, low: int, high: int, step: int) -> float:
        """As many matches as are expected."""
        return content * (high - low) * self.selectivities[step]

    def size(self, content: float) -> float:
        """The count itself."""
        return content
