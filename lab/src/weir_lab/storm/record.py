"""Read what each batch did from the progress lines of a lane."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from weir_lab.storm.schedule import Schedule
from weir_lab.storm.streams import START


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: what came and went, and what was decided for it; ages, freshness and times in seconds.

    `tick` is the newest it holds, `ticks` how many; `load` is the load of the machine when it had ended.
    """

    lane: str
    batch: int
    start: str
    tick: int
    ticks: int
    phase: str
    rows_in: int
    rows_out: int | None
    seconds: float
    interval: float
    state_bytes: int | None
    budget_bytes: int | None
    oldest_age: float | None
    shed: int | None
    recall: float | None
    plan: str
    orders: str
    allowance: str
    reason: str
    overhead: float
    load: float


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Read the complete lines written so far."""
    if not file.exists():
        return []
    whole = file.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def count_ticks_taken(
    lines: Sequence[Mapping[str, Any]], counts: Sequence[int], interval: float
) -> list[int]:
    """Count the ticks that had been read after each batch; `counts` are the rows of each tick."""
    taken: list[int] = []
    rows = 0
    for line in lines:
        rows += line["numInputRows"]
        newest = (line.get("weir") or {}).get("newest")
        # Event times tell it even where a driver was killed before a batch had been told.
        taken.append(
            count_ticks(rows, counts) if not newest else count_ticks_until(min(newest.values()), interval)
        )
    return taken


def count_ticks_until(time: int, interval: float) -> int:
    """Count the ticks that have begun at an event time."""
    return 1 + int((time - START) // round(interval * 1e6))


def read_batches(
    lane: str,
    lines: Sequence[Mapping[str, Any]],
    counts: Sequence[int],
    schedule: Schedule,
    interval: float,
) -> list[Batch]:
    """Read the batches of a lane; `counts` are the rows of each tick."""
    taken = count_ticks_taken(lines, counts, interval)
    return [
        _batch(lane, line, after - 1, after - before, schedule, interval)
        for line, before, after in zip(lines, [0, *taken], taken, strict=False)
    ]


def count_ticks(rows: int, counts: Sequence[int]) -> int:
    """Count the whole ticks that so many rows fill.

    >>> count_ticks(25, [10, 10, 10])
    2
    """
    return sum(total <= rows for total in accumulate(counts))


def find_changes(batches: Sequence[Batch]) -> list[tuple[Batch, Batch]]:
    """Pair each batch whose decision changed with the batch before it."""
    return [
        (before, after)
        for before, after in pairwise(batches)
        if (before.plan, before.orders, before.allowance) != (after.plan, after.orders, after.allowance)
    ]


def _batch(
    lane: str, line: Mapping[str, Any], tick: int, ticks: int, schedule: Schedule, interval: float
) -> Batch:
    ours: Mapping[str, Any] = line.get("weir") or {}
    decision: Mapping[str, Any] = ours.get("decision") or {}
    state = ours.get("state")
    age = ours.get("oldestAge")
    seconds: Mapping[str, Any] = ours.get("seconds") or {}
    return Batch(
        lane=lane,
        batch=line["batchId"],
        start=line["timestamp"],
        tick=tick,
        ticks=ticks,
        phase=schedule.phase(max(tick, 0)).name,
        rows_in=line["numInputRows"],
        rows_out=ours.get("numOutputRows"),
        seconds=line["durationMs"]["triggerExecution"] / 1000,
        interval=interval,
        state_bytes=None if state is None else sum(node["memoryUsedBytes"] for node in state.values()),
        budget_bytes=line["budget"],
        oldest_age=None if age is None else age / 1e6,
        shed=ours.get("numRowsShed"),
        recall=ours.get("estimatedRecall"),
        plan=str(decision.get("plan", "")),
        orders=json.dumps(decision.get("orders", {}), ensure_ascii=False),
        allowance=json.dumps(decision.get("allowance"), ensure_ascii=False),
        reason=str(decision.get("reason", "")),
        overhead=float(seconds.get("decide", 0.0)) + float(seconds.get("observe", 0.0)),
        load=line["load"],
    )
