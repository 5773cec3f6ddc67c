"""What each batch did, out of the lines that a lane wrote."""

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
    """The lines written so far; one that is being written is left for later."""
    if not file.exists():
        return []
    whole = file.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def ticks_taken(lines: Sequence[Mapping[str, Any]], counts: Sequence[int], interval: float) -> list[int]:
    """How many ticks had been taken in after each batch; `counts` are the rows of each tick."""
    found: list[int] = []
    rows = 0
    for line in lines:
        rows += line["numInputRows"]
        newest = (line.get("weir") or {}).get("newest")
        # Event times tell it even where a driver was killed before a batch had been told.
        found.append(ticks_in(rows, counts) if not newest else ticks_until(min(newest.values()), interval))
    return found


def ticks_until(time: int, interval: float) -> int:
    """How many ticks have begun at an event time."""
    return 1 + int((time - START) // round(interval * 1e6))


def batches(
    lane: str,
    lines: Sequence[Mapping[str, Any]],
    counts: Sequence[int],
    schedule: Schedule,
    interval: float,
) -> list[Batch]:
    """The batches of a lane; `counts` are the rows of each tick."""
    taken = ticks_taken(lines, counts, interval)
    return [
        _batch(lane, line, after - 1, after - before, schedule, interval)
        for line, before, after in zip(lines, [0, *taken], taken, strict=False)
    ]


def ticks_in(rows: int, counts: Sequence[int]) -> int:
    """How many whole ticks so many rows are.

    >>> ticks_in(25, [10, 10, 10])
    2
    """
    return sum(total <= rows for total in accumulate(counts))


def changes(batches: Sequence[Batch]) -> list[tuple[Batch, Batch]]:
    """Each batch that was decided otherwise than the one before, with that one."""
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
