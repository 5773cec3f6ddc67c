"""What is recorded of every batch of a run, beside the truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """One batch of one run: what it gave and told, and what it took beside what it was allowed.

    `exact` are the results of the exact join; `cpu` and `budget` are CPU seconds. `told` is the recall that
    the query tells, `low` and `high` its interval; None if it tells none. `predicted` is what the controller
    expected the join to take over what it took, in CPU seconds; None if it expected nothing.
    """

    scenario: str
    machine: str
    lane: str
    seed: int
    batch: int
    phase: str
    is_steady: bool
    exact: int
    results: int
    cpu: float
    budget: float | None
    bytes: int
    most_bytes: int | None
    told: float | None
    low: float | None
    high: float | None
    plan: str
    sheds: str
    predicted: float | None = None

    @property
    def recall(self) -> float | None:
        """The true recall; None if there was nothing to find."""
        return self.results / self.exact if self.exact else None


@dataclass(frozen=True, slots=True)
class Seen:
    """What can be seen of a batch without knowing the truth."""

    results: int
    cpu: float
    bytes: int
    told: float | None
    low: float | None
    high: float | None
    plan: str
    sheds: str
    predicted: float | None = None


def observe(progress: Mapping[str, Any], cpu: float, predicted: float | None = None) -> Seen:
    """Read a batch off `lastProgress["weir"]`, which is the same on every engine."""
    low, high = progress.get("estimatedRecallInterval") or (None, None)
    return Seen(
        results=progress["numOutputRows"],
        cpu=cpu,
        bytes=sum(state["memoryUsedBytes"] for state in progress["state"].values()),
        told=progress["estimatedRecall"],
        low=low,
        high=high,
        plan=progress["plan"],
        sheds=name_strategy(progress["decision"]["allowance"]),
        predicted=predicted,
    )


def name_strategy(allowance: Mapping[str, Any] | None) -> str:
    """Tell from an allowance how a batch sheds: probes, ages, rows, or several of them.

    >>> name_strategy({"probes": {"a ⋉ b in (a b)": 0.5}, "ages": {}, "drop": {}})
    'probes'
    """
    if allowance is None:
        return "exact"
    # A direction that never starts is part of a choice of ages.
    least = 0.0 if allowance["ages"] else -1.0
    kinds = {
        "probes": any(least < share < 1 for share in allowance["probes"].values()),
        "ages": bool(allowance["ages"]),
        "rows": any(allowance["drop"].values()),
    }
    return " and ".join(kind for kind, is_shed in kinds.items() if is_shed) or "exact"


def by_phase(records: Iterable[Record]) -> list[tuple[str, list[Record]]]:
    """The records of one run, phase by phase."""
    return [(name, list(group)) for name, group in groupby(records, attrgetter("phase"))]


def total_recall(records: Iterable[Record]) -> float | None:
    """The results of all batches over the exact ones."""
    found = list(records)
    exact = sum(record.exact for record in found)
    return sum(record.results for record in found) / exact if exact else None
