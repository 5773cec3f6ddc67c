"""`weir-lab bench psp`: the image query of Wang and Rundensteiner 2009, by every spread and by Spark's join.

Every query gets the same files in turns, so a busy machine slows all alike. Spark's own join is a chain of
stream-stream joins on a key that is always equal, with the window as its condition and the predicate as a
filter; it is so slow that it and psp meet once more at a lower rate.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import weir
from weir_lab.bench import spark_joins as chained
from weir_lab.bench.figure import Figure, ratio
from weir_lab.bench.images import SCHEMA, Images, similar
from weir_lab.bench.lanes import Lane, Starter, Turn
from weir_lab.bench.session import session

WINDOW_SECONDS = 10
TRIGGER_SECONDS = 5
# Batches before the windows are full; they start workers and warm Java up besides.
_FILLING = WINDOW_SECONDS // TRIGGER_SECONDS
ONE, SPARK = "one partition", "Spark's own"
SPREADS = ("psp", "share", "atr")


@dataclass(frozen=True, slots=True)
class Setting:
    """One size of the query: streams in a chain, pixels of an image, images a second on each stream."""

    streams: int
    pixels: int
    rows_per_second: float
    batches: int
    lanes: tuple[str, ...]

    @property
    def name(self) -> str:
        """As it stands in a figure's name."""
        return f"{self.streams}-way, {self.pixels / 1000:g} k pixels, {self.rows_per_second:g} images/s"


_OURS = (ONE, "psp", "share")
_PAIR = ("psp", SPARK)
# The rates make the predicate take some seconds a batch on one partition, whatever the size of the images; a
# segment of atr is longer than a run, so one size of the images tells all of it.
FULL = (
    Setting(3, 5_000, 32, 2, _OURS),
    Setting(3, 10_000, 23, 2, (*_OURS, "atr")),
    Setting(3, 20_000, 17, 2, _OURS),
    Setting(5, 5_000, 12, 2, _OURS),
    Setting(5, 10_000, 10, 2, (*_OURS, "atr")),
    Setting(5, 20_000, 8, 2, _OURS),
    Setting(3, 5_000, 12, 1, _PAIR),
    Setting(3, 10_000, 10, 1, _PAIR),
    Setting(3, 20_000, 8, 1, _PAIR),
    Setting(5, 5_000, 4, 1, _PAIR),
)
QUICK = (Setting(3, 5_000, 16, 1, (*_OURS, "atr")), Setting(3, 5_000, 8, 1, _PAIR))


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch of one query."""

    streams: int
    pixels: int
    rows_per_second: float
    query: str
    batch: int
    rows: int
    seconds: float
    latency: float
    results: int
    state_rows: int


def run(quick: bool = False) -> list[Measured]:
    """Every measured batch of every query."""
    # Libraries that start threads of their own would give one partition both cores.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS"):
        os.environ[name] = "1"
    spark = session("weir-lab bench psp")
    batches: list[Measured] = []
    try:
        for setting in QUICK if quick else FULL:
            turns = _raced(spark, setting)
            batches += record_turns(setting, turns)
    finally:
        spark.stop()
    return batches


def _raced(spark: Any, setting: Setting) -> dict[str, list[Turn]]:
    """The measured batches of every query; all must find as many results."""
    names = "abcde"[: setting.streams]
    images = Images(setting.rows_per_second, setting.pixels, TRIGGER_SECONDS)
    with tempfile.TemporaryDirectory(prefix="weir-psp-") as folder:
        source = Path(folder) / "source"
        images.write(source, range(_FILLING + setting.batches), names)
        lanes = [
            Lane.open(lane, spark, Path(folder) / str(i), source, _starter(lane), SCHEMA, names)
            for i, lane in enumerate(setting.lanes)
        ]
        try:
            for number in range(_FILLING + setting.batches):
                raced = {lane.name: lane.take([number]) for lane in lanes}
                _tell(setting, number, raced)
                if len({turn.results for turn in raced.values() if turn.results not in (None, -1)}) > 1:
                    raise RuntimeError(f"the queries found different numbers of results: {raced}")
        finally:
            for lane in lanes:
                lane.close()
        return {lane.name: lane.turns[_FILLING:] for lane in lanes}


def _tell(setting: Setting, number: int, raced: Mapping[str, Turn]) -> None:
    shown = ", ".join(f"{name} {turn.seconds:.1f} s" for name, turn in raced.items())
    results = max(turn.results or 0 for turn in raced.values())
    rows = max(turn.rows for turn in raced.values())
    where = f"batch {number + 1} of {_FILLING + setting.batches}, {rows} images, {results} results"
    print(f"{setting.name}, {where}: {shown}", file=sys.stderr, flush=True)


def record_turns(setting: Setting, turns: Mapping[str, Sequence[Turn]]) -> list[Measured]:
    """The batches of a setting, query by query."""
    return [
        Measured(
            setting.streams,
            setting.pixels,
            setting.rows_per_second,
            query,
            batch,
            turn.rows,
            turn.seconds,
            turn.latency,
            max(turn.results or 0, 0),
            turn.state_rows or 0,
        )
        for query, taken in turns.items()
        for batch, turn in enumerate(taken)
    ]


def figures(batches: Sequence[Measured]) -> list[Figure]:
    """Two partitions against one, psp against the others on two, and Spark's own against psp."""
    compared: list[Figure] = []
    for (streams, pixels, rate), queries in _by_setting(batches).items():
        name = f"{streams}-way, {pixels / 1000:g} k pixels, {rate:g} images/s"
        seconds = {query: [batch.seconds for batch in turns] for query, turns in queries.items()}
        for above, below, aim in (
            *((ONE, spread, 1.8) for spread in SPREADS),
            ("share", "psp", 1.0),
            ("atr", "psp", 1.0),
            (SPARK, "psp", 10.0),
        ):
            if above in seconds and below in seconds:
                note = f"{_rate(queries[below]):.0f} rows/s instead of {_rate(queries[above]):.0f}"
                title = f"{name}: {above} / {below}"
                compared.append(ratio(title, seconds[above], seconds[below], aim, "at least", note))
    return compared


def summarise(batches: Sequence[Measured]) -> list[tuple[str, ...]]:
    """What each query did at each setting, as text: medians of its batches."""

    def line(setting: tuple[int, int, float], query: str, turns: Sequence[Measured]) -> tuple[str, ...]:
        streams, pixels, rate = setting
        return (
            f"{streams}",
            f"{pixels:,}",
            f"{rate:g}",
            query,
            f"{len(turns)}",
            f"{_rate(turns):.1f}",
            f"{_latency(turns):.2f}",
            f"{median(batch.results / batch.seconds for batch in turns):,.0f}",
            f"{median(batch.state_rows for batch in turns):,.0f}",
        )

    return [
        line(setting, query, turns)
        for setting, queries in _by_setting(batches).items()
        for query, turns in queries.items()
    ]


def describe_queries() -> str:
    """What is compared, for those who read the tables."""
    wait, cores, busy = TRIGGER_SECONDS / 2, os.cpu_count(), os.getloadavg()[2]
    return (
        f"A chain of streams, each image similar to that of its neighbour; windows of {WINDOW_SECONDS} s, "
        f"Poisson arrivals, one batch for every {TRIGGER_SECONDS} s of them. Latency: from the trigger that "
        "takes rows in to the moment their results are out; before that, a row waits for its trigger, "
        f"{wait:g} s on average. psp, share and atr run on two partitions. Spark's own: stream-stream joins "
        "in a chain, on a key that is always equal, the window as their condition and the same predicate as "
        "a filter. Ratios are of seconds a batch, batch by batch. In the last quarter of an hour "
        f"{busy:.1f} processes wanted the {cores} cores, these queries among them."
    )


def _by_setting(
    batches: Sequence[Measured],
) -> dict[tuple[int, int, float], dict[str, list[Measured]]]:
    settings: dict[tuple[int, int, float], dict[str, list[Measured]]] = {}
    for batch in batches:
        setting = settings.setdefault((batch.streams, batch.pixels, batch.rows_per_second), {})
        setting.setdefault(batch.query, []).append(batch)
    return settings


def _rate(turns: Sequence[Measured]) -> float:
    return median(batch.rows / batch.seconds for batch in turns)


def _latency(turns: Sequence[Measured]) -> float:
    return median(batch.latency for batch in turns)


def _starter(lane: str) -> Starter:
    if lane == SPARK:
        return _theirs
    return partial(_ours, 1, "auto") if lane == ONE else partial(_ours, 2, lane)


def _ours(partitions: int, spread: Any, streams: Mapping[str, Any], folder: Path) -> Any:
    joined: Any = weir.join(
        streams=streams,
        on=" AND ".join(f"similar({left}.image, {right}.image)" for left, right in pairwise(streams)),
        within=f"{WINDOW_SECONDS} seconds",
        select=", ".join(f"{name}.ts AS {name}ts" for name in streams),
        functions={"similar": weir.udf(similar)},
        # Chosen for each batch, the order would differ between queries, and with it their work.
        driver_order=tuple(streams),
        partitions=partitions,
        spread=spread,
    )
    writer = joined.writeStream.format("noop")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def _theirs(streams: Mapping[str, Any], folder: Path) -> Any:
    from weir_lab.spark_session import register_predicate

    spark = next(iter(streams.values())).sparkSession
    register_predicate(spark, "similar", similar)
    joined = chained.chain_filtered_joins(streams, WINDOW_SECONDS, "similar", "image")
    writer = joined.writeStream.format("noop")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()
