"""Ages of partners that a probe reads: the logical basic windows of Gedik et al. 2007, section IV-A."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weir.errors import QueryError, refuse_unknown_keys


@refuse_unknown_keys
@dataclass(frozen=True, slots=True)
class Ages:
    """Basic windows, each `every` microseconds of age long: number k holds ages from k to k + 1 times that.

    An age is the event time of the probing row minus that of its partner. Basic window 0 also holds the
    negative ages that batches and disorder bring.

    >>> list(Ages(1_000_000, frozenset({0, 1, 3})).runs())
    [(None, 1999999), (3000000, 3999999)]
    """

    every: int
    kept: frozenset[int]

    def __post_init__(self) -> None:
        if not isinstance(self.every, int) or self.every < 1:
            raise QueryError(
                f"a basic window is a whole number of microseconds, 1 or more; got {self.every!r}"
            )
        object.__setattr__(self, "kept", frozenset(self.kept))
        for number in self.kept:
            if not isinstance(number, int) or number < 0:
                raise QueryError(f"basic windows are numbered 0, 1, 2 and so on; got {number!r}")

    def runs(self) -> Iterator[tuple[int | None, int]]:
        """Youngest and oldest age of each run of neighbouring basic windows; None: no age is too young."""
        numbers = sorted(self.kept)
        starts = [number for number in numbers if number - 1 not in self.kept]
        ends = [number for number in numbers if number + 1 not in self.kept]
        for start, end in zip(starts, ends, strict=True):
            yield (start * self.every if start else None), (end + 1) * self.every - 1
