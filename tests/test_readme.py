"""The README's Python runs as it stands, block after block in one session."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from weir.script.parse import parse_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def needs_spark(block: str) -> bool:
    return "spark." in block


def run_blocks() -> dict[str, Any]:
    blocks = [block for block in python_blocks(README.read_text()) if not needs_spark(block)]
    assert len(blocks) >= 2
    session: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), session)
    return session


def test_every_python_block_of_the_readme_runs() -> None:
    assert run_blocks()["result"].num_rows == 2


def test_the_example_of_adaptation_runs() -> None:
    session: dict[str, Any] = {}
    for block in python_blocks((ROOT / "docs" / "adaptation.md").read_text()):
        exec(compile(block, "adaptation.md", "exec"), session)
    known = session["query"].statistics
    assert known.batches == 8 and known.rates == pytest.approx(dict.fromkeys(known.rates, 200.0), rel=0.1)
    assert session["query"].lastProgress["weir"]["estimatedRecall"] == 1.0


def read_tests() -> dict[str, Any]:
    """The tests that docs/testing.md shows, by name."""
    session: dict[str, Any] = {}
    for block in python_blocks((ROOT / "docs" / "testing.md").read_text()):
        exec(compile(block, "testing.md", "exec"), session)
    return {name: function for name, function in session.items() if name.startswith("test_")}


def test_the_page_on_tables_runs() -> None:
    session: dict[str, Any] = {}
    blocks = python_blocks((ROOT / "docs" / "tables.md").read_text())
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "tables.md", "exec"), session)


def test_the_tests_of_the_guide_to_testing_pass() -> None:
    tests = [function for name, function in read_tests().items() if not name.endswith("_on_spark")]
    assert len(tests) == 2
    for function in tests:
        function()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_test_of_the_guide_for_spark_passes(spark: SparkSession, tmp_path: Path) -> None:
    (function,) = (function for name, function in read_tests().items() if name.endswith("_on_spark"))
    function(spark, tmp_path)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_block_for_spark_finds_the_same(spark: SparkSession, tmp_path: Path) -> None:
    session = run_blocks()
    for exchange in ("nyc", "tokyo", "london"):
        (tmp_path / "trades" / exchange).mkdir(parents=True)
        trades = session[exchange]
        instants = trades["ts"].cast(pa.timestamp("us", tz="UTC"))
        pq.write_table(trades.set_column(0, "ts", instants), tmp_path / "trades" / exchange / "1.parquet")
    blocks = [block for block in python_blocks(README.read_text()) if needs_spark(block)]
    assert blocks
    for block in blocks:
        # The driver's Java does not follow a change of folder, so the folders are named in full.
        placed = re.sub(r"\"(trades|dearer)", rf'"{tmp_path}/\1', block)
        exec(compile(placed, str(README), "exec"), {**session, "spark": spark})
    results = pa.concat_tables(pq.read_table(file) for file in (tmp_path / "dearer").glob("part-*.parquet"))
    assert results.sort_by("bought").to_pydict() == session["result"].to_pydict()


def test_the_scripts_of_the_documents_parse() -> None:
    scripts = 0
    for name in ("README.md", "docs/spark.md"):
        for block in re.findall(r"^```sql\n(.*?)^```$", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE):
            parse_script(block)
            scripts += 1
    assert scripts >= 2


@pytest.mark.parametrize("convert", [pl.from_arrow, pa.Table.to_pandas], ids=["polars", "pandas"])
def test_the_readmes_tables_may_be_polars_or_pandas(convert: Callable[[pa.Table], Any]) -> None:
    session = run_blocks()
    tables = {name: convert(session[name]) for name in ("nyc", "tokyo", "london")}
    condition = "nyc.symbol = tokyo.symbol AND tokyo.symbol = london.symbol AND tokyo.price > nyc.price"
    select = "tokyo.symbol, nyc.price AS bought, tokyo.price AS sold"
    results = weir.join(on=condition, within="10 seconds", select=select, **tables).to_arrow()
    assert results.sort_by("bought").to_pydict() == session["result"].to_pydict()


def test_every_local_link_of_the_readme_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_every_make_target_of_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"^make ([a-z]+)", (ROOT / name).read_text(), flags=re.MULTILINE))
        assert named
        assert named <= targets
