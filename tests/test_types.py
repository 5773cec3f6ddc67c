"""Type checkers know which engine joins which tables, and what each argument takes."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any, get_overloads

import pytest
from mypy import api

import weir
from weir.options import arguments_of

SNIPPET = """
from typing import Any, assert_type
import weir
from weir.api import ArrowSchema, ArrowStream, SparkFrame
from weir.local.join import LocalJoin
from weir.spark.join import SparkJoin
from pyspark.sql import DataFrame
import polars as pl

def check(
    frame: DataFrame, table: pl.DataFrame, lazy: pl.LazyFrame, schema: ArrowSchema, other: Any
) -> None:
    assert_type(weir.join(a=frame, b=frame, on="a.k = b.k", partitions=2), SparkJoin)
    assert_type(weir.join(streams={"a": frame, "b": frame}, within={"a": "1 s"}), SparkJoin)
    assert_type(weir.sql("SELECT ...", a=frame, b=frame, idle="1 hour"), SparkJoin)
    assert_type(weir.join(a=table, b=table, on="a.k = b.k", driver_order=["b", "a"]), LocalJoin)
    assert_type(weir.join(a=table, b=schema), LocalJoin)
    assert_type(weir.sql("SELECT ...", streams={"a": table}, on_null_time="fail"), LocalJoin)
    assert_type(weir.join(a=lazy, b=[{"ts": 1, "k": "x"}], on="a.k = b.k"), LocalJoin)
    assert_type(weir.join(a=({"k": k} for k in "xyz"), b=(table for _ in "xy")), LocalJoin)
    assert_type(weir.join(a=[lazy], b=iter([table])).to_polars(), pl.DataFrame)
    spark: SparkFrame = frame
    arrow: ArrowStream = table
    weir.join(a=table, b=table, partitions=2)  # E
    weir.join(a=frame, b=frame, on=5)  # E
    weir.join(a=frame, b=frame, driver_order="soonest")  # E
    weir.sql("SELECT ...", a=table, within="1 s")  # E
    weir.join(a=5, b=table)  # E
    weir.join(a=[5], b=table)  # E
    weir.join(a="orders.parquet", b=table)  # E
"""


@pytest.mark.slow
def test_overloads(tmp_path: Path) -> None:
    source = tmp_path / "snippet.py"
    source.write_text(SNIPPET)
    root = Path(__file__).parents[1]
    options = ["--config-file", str(root / "pyproject.toml"), "--no-error-summary", "--hide-error-context"]
    report, errors, _ = api.run([*options, "--cache-dir", str(tmp_path / "cache"), str(source)])
    lines = [int(line.split(":")[1]) for line in report.splitlines() if ": error:" in line]
    wrong = [number for number, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# E")]
    assert (lines, errors) == (wrong, ""), report


@pytest.mark.parametrize("function", [weir.join, weir.sql])
def test_signatures_name_every_option(function: Any) -> None:
    options = [field.name for field in arguments_of(function.__name__)]
    text = ["text"] * (function is weir.sql)
    for_spark, for_tables = (list(signature(overload).parameters) for overload in get_overloads(function))
    assert for_spark == list(signature(function).parameters) == [*text, *options, "streams", "tables"]
    assert set(for_spark) - set(for_tables) == {"partitions", "spread", "idle", "ahead", "durability"}


def test_help_describes_every_option() -> None:
    for field in arguments_of("join"):
        assert f"{field.name}: {field.metadata['meaning']}" in (weir.join.__doc__ or "")
