"""Streaming queries that take turns: each gets the same files, one after the other, and is timed by Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from weir_lab.bench.feed import SCHEMA, STREAMS, hand_over, streams

# From a lane's streams and a folder for checkpoint and output to a started query.
Starter = Callable[[Mapping[str, Any], Path], Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """What one batch took and gave, after Spark's own progress; None is what the query does not tell."""

    seconds: float
    rows: int
    results: int | None
    state_rows: int | None
    phases: Mapping[str, float]

    @property
    def latency(self) -> float:
        """Seconds from the trigger that took the rows in to the moment their results were out."""
        return self.seconds - sum(self.phases.get(name, 0.0) for name in _AFTER_RESULTS)


# What a batch still does when its results are out.
_AFTER_RESULTS = ("spark commitOffsets", "weir commit")


@dataclass
class Lane:
    """One query with an input folder of its own."""

    name: str
    folder: Path
    source: Path
    query: Any
    names: Sequence[str] = STREAMS
    turns: list[Turn] = field(default_factory=list)
    _seen: int = -1

    @staticmethod
    def open(
        name: str,
        spark: Any,
        folder: Path,
        source: Path,
        start: Starter,
        schema: str = SCHEMA,
        names: Sequence[str] = STREAMS,
    ) -> Lane:
        """Start the query; nothing has come in yet."""
        query = start(streams(spark, folder / "in", schema=schema, names=names), folder)
        return Lane(name, folder, source, query, names)

    def take(self, seconds: Sequence[int]) -> Turn:
        """Bring in the files of some seconds and wait until they are processed."""
        hand_over(self.source, self.folder / "in", seconds, self.names)
        self.query.processAllAvailable()
        new = [p for p in self.query.recentProgress if p["batchId"] > self._seen and p["numInputRows"]]
        self._seen = max(p["batchId"] for p in new)
        # One, unless Spark looked while the files were being linked.
        turn = _added([read_turn(p) for p in new])
        self.turns.append(turn)
        return turn

    def close(self) -> None:
        """Stop, and forget all files."""
        self.query.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def read_turn(progress: Mapping[str, Any]) -> Turn:
    """Read what a batch took and gave from its progress."""
    took = progress["durationMs"]
    phases = {f"spark {name}": ms / 1000 for name, ms in took.items() if name != "triggerExecution"}
    ours = progress.get("weir")
    if ours is None:
        operators = progress["stateOperators"]
        state = sum(operator["numRowsTotal"] for operator in operators) if operators else None
        told = progress["sink"]["numOutputRows"]
        results = told if told >= 0 else None  # a foreachBatch tells nothing
    else:
        state = sum(node["numRowsTotal"] for node in ours["state"].values())
        results = ours["numOutputRows"]
        phases |= {f"weir {name}": value for name, value in ours["seconds"].items() if name != "task"}
        phases |= {f"task {name}": value for name, value in ours["seconds"]["task"].items()}
    return Turn(took["triggerExecution"] / 1000, progress["numInputRows"], results, state, phases)


def _added(turns: Sequence[Turn]) -> Turn:
    if len(turns) == 1:
        return turns[0]
    names = {name for turn in turns for name in turn.phases}
    known = [turn.results for turn in turns if turn.results is not None]
    return Turn(
        seconds=sum(turn.seconds for turn in turns),
        rows=sum(turn.rows for turn in turns),
        results=sum(known) if len(known) == len(turns) else None,
        state_rows=turns[-1].state_rows,
        phases={name: sum(turn.phases.get(name, 0.0) for turn in turns) for name in names},
    )


def phase_medians(turns: Sequence[Turn]) -> dict[str, float]:
    """The median seconds of each phase, those that take a millisecond or more, longest first."""
    names = {name for turn in turns for name in turn.phases}
    seconds = {name: median(turn.phases.get(name, 0.0) for turn in turns) for name in names}
    return {
        name: seconds[name] for name in sorted(seconds, key=lambda n: -seconds[n]) if seconds[name] >= 0.001
    }


def describe_phases(turns: Sequence[Turn]) -> str:
    """Where a batch's time goes, in milliseconds; `task` is the slowest task of each phase."""
    return ", ".join(f"{name} {1000 * seconds:.0f}" for name, seconds in phase_medians(turns).items())
