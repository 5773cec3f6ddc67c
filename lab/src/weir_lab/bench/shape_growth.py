"""How time grows with rows: an exponent over doubling sizes whose windows hold ever the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir_lab.bench.figure import Figure, fit_exponent, summarise

_AIM = 1.1
# Sizes below the last four doublings only warm up: there the fixed cost of a batch hides the growth.
_FITTED = 5


def double(first: int, last: int) -> list[int]:
    """The sizes from the first to the last, each twice the one before.

    >>> double(10, 40)
    [10, 20, 40]
    """
    sizes = [first]
    while 2 * sizes[-1] <= last:
        sizes.append(2 * sizes[-1])
    return sizes


def describe_growth(name: str, seconds: Mapping[int, Sequence[float]]) -> Figure:
    """The median exponent of the turns; `seconds` has those of each turn by size."""
    sizes = sorted(seconds)[-_FITTED:]
    turns = zip(*(seconds[size] for size in sizes), strict=True)
    exponents = [fit_exponent(sizes, turn) for turn in turns]
    first, last = (f"{size:,} rows {min(seconds[size]):.3f} s" for size in (sizes[0], sizes[-1]))
    return summarise(f"{name}: exponent of the time in rows", exponents, _AIM, "at most", f"{first}, {last}")


def check_equal(results: Mapping[str, int], where: str) -> None:
    """The comparison means nothing unless all find the same number of results."""
    if len(set(results.values())) > 1:
        raise RuntimeError(f"{where}: different numbers of results, {dict(results)}")
