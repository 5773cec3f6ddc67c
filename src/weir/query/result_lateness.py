"""How late results are: how far a later result may lie behind results that came before it.

Say that batches up to n have brought a result in which the row of stream i has the time T_i.

    T_j >= T_i - spread(i, j)               the rows of that result, by windows and time bounds
    watermark >= min_j (T_j - late_j)       after batch n, since every stream j has reached T_j;
                                            streams that are idle only leave the minimum
    T_k >= watermark                        a later result has a row that came after batch n and was not late
    T_i' >= T_k - spread(k, i)              the time of stream i in that later result

So T_i' >= T_i - max_j (spread(i, j) + late_j) - max_k spread(k, i), where spread(i, j) is the maximum of
T_i - T_j. It holds between batches only: results of one batch, like those of the first, may lie as far apart
as rows do. So whoever goes by it has to read batches as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from weir.query.model import Query


def result_lateness(query: Query, stream: str) -> int | None:
    """Return how far the time of a stream may go back from batch to batch of the results, in µs.

    None if nothing bounds it, as with windows that count rows.
    """
    i, upper = query.names.index(stream), query.bounds.upper
    # upper[j][i] is the spread of i and j.
    reached = _max_sum((upper[j][i], other.late) for j, other in enumerate(query.streams))
    back = _max_sum((length, 0) for length in upper[i])
    return None if reached is None or back is None else reached + back


def _max_sum(pairs: Iterable[tuple[int | None, int]]) -> int | None:
    """The largest sum of two lengths; None if one of them is unknown."""
    sums = [None if first is None else first + second for first, second in pairs]
    return None if None in sums else max(total for total in sums if total is not None)
