"""Columns and streams of any name, on Spark: in conditions, outputs, times, watermarks and sinks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import weir

from .streams import SECOND, START, bag, read_bag, run, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

NAMES = (
    "x.y", "a`b", "`", "sp ace", "select", "k@key", "@rank", "weir", "weir_stream", "weir_partition", "Ünï",
    "weir_time", "weir_key_hash", "weir_copy", "weir_first_segment", "slot0", "weir_tried0", "weir_output0",
    "report",
)  # fmt: skip
STREAMS = ("weir_stream", "select", "weir_output0")
TIME = "made.`at"
ROWS, EACH = 12, 5  # rows of a stream, and names that one query reads


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _table(seed: int) -> pa.Table:
    """Each of the columns holds other numbers, so that a mistaken one shows."""
    rng = np.random.default_rng(seed)
    times = pa.array(START + rng.integers(0, 4 * SECOND, ROWS)).cast(pa.timestamp("us", "UTC"))
    return pa.table([times, *(rng.integers(0, 4, ROWS) for _ in NAMES)], names=[TIME, *NAMES])


def _columns(number: int) -> list[str]:
    return [quote(NAMES[(number + shift) % len(NAMES)]) for shift in range(EACH)]


def _condition(number: int) -> str:
    """A key, a residual and computed columns, some of which can fail, over columns of other names each."""
    (a, b, c), (u, v, w, x, y), at = map(quote, STREAMS), _columns(number), quote(TIME)
    return (
        f"{a}.{u} = {b}.{u} AND {b}.{u} = {c}.{u} AND {b}.{v} <= {c}.{w} + {a}.{x} "
        f"AND 10 / ({c}.{y} + 1) > 1 AND {a}.{v} < 5 AND 7 / ({b}.{y} + 1) < {a}.{w} * 9 + {c}.{v} "
        f"AND {b}.{at} BETWEEN {a}.{at} - INTERVAL 2 SECONDS AND {a}.{at} "
        f"AND {c}.{at} BETWEEN {b}.{at} - INTERVAL 2 SECONDS AND {b}.{at}"
    )


def _outputs(number: int) -> list[str]:
    (a, b, c), (u, v, w, x, y), at = map(quote, STREAMS), _columns(number), quote(TIME)
    return [
        f"{a}.{u}",
        f"{b}.{v} + 1 AS {quote('2 ' + NAMES[number])}",
        f"format_string('%s-%s', {a}.{w}, {c}.{x}) AS {quote('text.' + NAMES[number])}",
        f"1 / ({c}.{y} + 1) AS {quote(NAMES[number + 1])}",
        f"unix_micros({c}.{at}) AS {at}",
    ]


def _by_spark(frames: dict[str, DataFrame], number: int) -> Any:
    a, b, c = (frame.alias(name) for name, frame in frames.items())
    joined = a.crossJoin(b).crossJoin(c).filter(_condition(number))
    return bag(joined.selectExpr(*_outputs(number)).toArrow())


@pytest.mark.parametrize("number", range(0, len(NAMES), EACH))
def test_any_name_means_what_it_means_in_spark(number: int, spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", {name: [_table(seed)] for seed, name in enumerate(STREAMS)})
    wanted = _by_spark(feed.statics(spark), number)
    assert wanted.total() > 3
    watermarked = {
        name: frame.withWatermark(quote(TIME), "1 second") for name, frame in feed.frames(spark).items()
    }
    join = weir.join(
        streams=watermarked,
        on=_condition(number),
        select=", ".join(_outputs(number)),
        spread=("hash", "share", "psp", "atr")[number % 4],
    )
    assert [stream.late for stream in join.query.streams] == [1_000_000] * 3
    run(join, tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == wanted
