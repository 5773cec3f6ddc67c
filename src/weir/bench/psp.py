"""`weir bench psp`: images joined by a Python predicate, by every spread, beside Spark's own join.

Every query gets the same files in turns, so a busy machine slows all alike. Spark's own join needs an
equality, so it gets one that always holds, and the predicate as a filter over the pairs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import weir
from weir.bench import chained
from weir.bench.figure import Figure, ratio
from weir.bench.images import SCHEMA, Images, similar
from weir.bench.lanes import Lane, Turn
from weir.bench.session import session

WINDOW_SECONDS = 5
_ON = "similar(a.image, b.image) AND similar(b.image, c.image)"
_SPREADS = {
    "one partition": (1, "auto"),
    "share": (2, "share"),
    "psp": (2, "psp"),
    "atr": (2, "atr"),
}
_SPARK = "Spark's own"


def run(quick: bool = False) -> list[Figure]:
    """Two partitions against one, and all against Spark's own join, for each size of the images."""
    spark = session("weir bench psp")
    sizes = (1_000,) if quick else (5_000, 10_000, 20_000)
    figures: list[Figure] = []
    try:
        for pixels in sizes:
            print(f"images of {pixels} pixels ...", file=sys.stderr)
            figures += _figures(pixels, _raced(spark, Images(6 if quick else 40, pixels), 2 if quick else 4))
    finally:
        spark.stop()
    return figures


def _raced(spark: Any, images: Images, measured: int) -> dict[str, list[Turn]]:
    """The measured batches of every query: the window fills, one batch warms up, the rest count."""
    with tempfile.TemporaryDirectory(prefix="weir-psp-") as name:
        folder = Path(name)
        images.write(folder / "source", range(WINDOW_SECONDS + 1 + measured))
        starts = {lane: partial(_ours, *how) for lane, how in _SPREADS.items()} | {_SPARK: _theirs}
        lanes = [
            Lane.open(lane, spark, folder / str(i), folder / "source", start, SCHEMA)
            for i, (lane, start) in enumerate(starts.items())
        ]
        try:
            for batch in (range(WINDOW_SECONDS), *((WINDOW_SECONDS + i,) for i in range(1 + measured))):
                found = {lane.name: lane.take(batch) for lane in lanes}
                results = {turn.results for turn in found.values() if turn.results is not None}
                if len(results) > 1:
                    raise RuntimeError(f"the queries differ: {sorted(results)} results")
        finally:
            for lane in lanes:
                lane.close()
        return {lane.name: lane.turns[2:] for lane in lanes}


def _figures(pixels: int, turns: Mapping[str, list[Turn]]) -> list[Figure]:
    seconds = {name: [turn.seconds for turn in found] for name, found in turns.items()}
    size = f"{pixels // 1000} k pixels"
    rows = {name: sum(turn.rows for turn in found) / sum(seconds[name]) for name, found in turns.items()}
    told = ", ".join(f"{name} {rate:.0f}" for name, rate in rows.items())
    one = seconds["one partition"]
    return [
        *(
            ratio(
                f"{size}: one partition / two, {name}", one, seconds[name], 1.8, "at least", f"rows/s: {told}"
            )
            for name in ("share", "psp", "atr")
        ),
        ratio(
            f"{size}: Spark's own / psp", seconds[_SPARK], seconds["psp"], 10, "at least", f"rows/s: {told}"
        ),
        ratio(f"{size}: Spark's own / share", seconds[_SPARK], seconds["share"], 10, "at least"),
        ratio(f"{size}: psp / share", seconds["psp"], seconds["share"], 1, "at least"),
    ]


def _ours(partitions: int, spread: str, streams: Mapping[str, Any], folder: Path) -> Any:
    joined = weir.join(
        streams=streams,
        on=_ON,
        within=f"{WINDOW_SECONDS} seconds",
        select="a.ts AS ats, b.ts AS bts, c.ts AS cts",
        functions={"similar": weir.udf(similar)},
        partitions=partitions,
        spread=spread,
    )
    writer = joined.writeStream.format("noop")  # type: ignore[union-attr] # streams of Spark give Spark's
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def _theirs(streams: Mapping[str, Any], folder: Path) -> Any:
    from weir.spark.local import register_predicate

    spark = next(iter(streams.values())).sparkSession
    register_predicate(spark, "similar", similar)
    joined = chained.filtered(streams, WINDOW_SECONDS, "similar", "image")
    writer = joined.writeStream.format("noop")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()
