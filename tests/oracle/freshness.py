"""Freshness by its definition, over all combinations of rows: what both engines are compared with.

A row arrives at the clock of the batch that brought it. By event time that clock is the newest event time
before the batch, or after it if there was no row before; by the wall clock, the time when it was decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from weir.plan.tree import JTree

SECOND = 1_000_000


class Row(NamedTuple):
    """A row of some stream."""

    id: int
    time: int
    key: int


Batch = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class FreshCase:
    """A join with freshness, its batches, and the wall clock of each; all times in seconds.

    Batches in `crashes` fail once, and are repeated when the wall clock has moved on.
    """

    batches: tuple[Batch, ...]
    windows: Mapping[str, int]
    late: int
    fresh: Mapping[str, int]
    clock: str
    walls: tuple[int, ...]
    plan: JTree | str = "mjoin"
    crashes: frozenset[int] = frozenset()


@dataclass
class Judged:
    """What a batch gives: the ids of its results, how many were stale, and the oldest age in a result."""

    results: Counter[tuple[int, ...]] = field(default_factory=Counter)
    stale: int = 0
    oldest: int | None = None


def judge(case: FreshCase) -> list[Judged]:
    """What each batch gives, combination by combination."""
    kept: dict[str, list[tuple[Row, int]]] = {name: [] for name in case.windows}  # with their batches
    newest: dict[str, int] = {}
    watermark: int | None = None
    clocks: list[int | None] = []
    judged = []
    for number, batch in enumerate(case.batches):
        now = max(newest.values(), default=None)
        if case.clock == "wall":  # which stands still while it is set back
            now = max([case.walls[number], *(clock for clock in clocks if clock is not None)])
        for name, rows in batch.items():
            kept[name] += [(row, number) for row in rows if watermark is None or row.time >= watermark]
        newest = {name: max(row.time for row, _ in rows) for name, rows in kept.items() if rows}
        clocks.append(max(newest.values(), default=None) if now is None else now)
        judged.append(_judge_batch(case, number, now, clocks, kept))
        if len(newest) == len(kept):
            lowest = min(newest.values()) - case.late
            watermark = lowest if watermark is None else max(watermark, lowest)
    return judged


def _judge_batch(
    case: FreshCase,
    number: int,
    now: int | None,
    clocks: Sequence[int | None],
    kept: Mapping[str, Sequence[tuple[Row, int]]],
) -> Judged:
    judged = Judged()
    for combination in product(*kept.values()):
        latest = max(row.time for row, _ in combination)
        in_windows = (
            latest - row.time < case.windows[name] for name, (row, _) in zip(kept, combination, strict=True)
        )
        is_new = max(brought for _, brought in combination) == number
        if not is_new or len({row.key for row, _ in combination}) > 1 or not all(in_windows):
            continue
        brought = dict(zip(kept, (batch for _, batch in combination), strict=True))
        # Before the first row there is no clock, and all rows are of this batch.
        ages = {name: 0 if now is None else now - clocks[brought[name]] for name in case.fresh}
        if any(ages[name] > fresh for name, fresh in case.fresh.items()):
            judged.stale += 1
            continue
        judged.results[tuple(row.id for row, _ in combination)] += 1
        judged.oldest = max([*ages.values(), *([] if judged.oldest is None else [judged.oldest])])
    return judged
