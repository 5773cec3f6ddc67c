"""The `weir` command: what it prints, and how it ends."""

from __future__ import annotations

import re
import sys
import tempfile
from functools import partial
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

import weir
from weir.cli import demo
from weir.cli.app import app, main
from weir.cli.demo import EXCHANGES, TRADES, Market
from weir.cli.watch import BatchFigures
from weir.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(*args: str) -> str:
    result = CliRunner().invoke(app, args, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def figures(summary: str) -> dict[str, int]:
    """The whole numbers of the demo's last line, by the word that follows them."""
    pairs = re.findall(r"([\d,]+) (rows in,|results|late rows|in state)", summary)
    return {word: int(number.replace(",", "")) for number, word in pairs}


class TestDemo:
    def test_counts_down_and_sums_up(self) -> None:
        lines = run("demo", "--local", "--batches", "12").splitlines()
        left = [int(match[1]) for line in lines if (match := re.match(r"batches left +(\d+) ", line))]
        assert left == list(range(11, -1, -1))
        told = figures(lines[-1])
        assert told["rows in,"] == 12 * 3 * 200
        assert told["results"] > 100
        assert told["late rows"] > 0
        assert 0 < told["in state"] < told["rows in,"]

    def test_the_same_seed_gives_the_same_results(self) -> None:
        def told(seed: str) -> dict[str, int]:
            return figures(run("demo", "--local", "--batches", "4", "--seed", seed).splitlines()[-1])

        assert told("1") == told("1")
        assert told("1") != told("2")

    def test_finds_what_the_whole_market_joined_at_once_holds(self) -> None:
        market = Market(rows_per_second=60)
        batches = [{name: market.batch(name, n) for name in EXCHANGES} for n in range(8)]
        query = demo.join_exchanges(**dict.fromkeys(EXCHANGES, TRADES)).start()
        streamed = []
        on_time: dict[str, list[pa.Table]] = {name: [] for name in EXCHANGES}
        newest: dict[str, int] = {}
        watermark = None
        for batch in batches:
            streamed.append(query.process(**batch))
            for name, table in batch.items():
                times = table["ts"].cast(pa.int64())
                kept = table if watermark is None else table.filter(pc.greater_equal(times, watermark))
                on_time[name].append(kept)
                newest[name] = max(newest.get(name, 0), pc.max(times).as_py())
            watermark = min(newest.values()) - 2_000_000
        at_once = demo.join_exchanges(
            **{name: pa.concat_tables(parts) for name, parts in on_time.items()}
        ).to_arrow()
        order = [(name, "ascending") for name in at_once.column_names]
        assert at_once.num_rows > 20
        assert pa.concat_tables(streamed).sort_by(order).equals(at_once.sort_by(order))

    def test_shows_a_live_display_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        screen = StringIO()
        monkeypatch.setattr(demo, "Console", partial(Console, file=screen, force_terminal=True, width=140))
        demo.run_demo(batches=3, rows_per_second=50, local=True)
        assert "\x1b[" in screen.getvalue()
        assert "batches left   0" in screen.getvalue()

    def test_shows_the_best_result_of_each_of_the_best_stocks(self) -> None:
        gains = [("AA", 0.1), ("AA", 0.3), ("BB", 0.2), ("CC", 0.4), ("CC", 0.4), ("DD", 0.01)]
        results = pa.table(
            {"symbol": [s for s, _ in gains], "bought": [0] * 6, "gain": [g for _, g in gains]}
        )
        assert demo.choose_best([results], 3).to_pydict() == {
            "symbol": ["CC", "AA", "BB"],
            "bought": [0, 0, 0],
            "gain": [0.4, 0.3, 0.2],
        }

    def test_works_when_nothing_matches(self) -> None:
        told = run("demo", "--local", "--batches", "1", "--rows-per-second", "1")
        assert figures(told.splitlines()[-1])["results"] == 0

    def test_refuses_no_batches(self) -> None:
        assert CliRunner().invoke(app, ["demo", "--batches", "0"]).exit_code == 2


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
class TestDemoOnSpark:
    def test_tells_what_the_demo_in_one_process_tells_and_leaves_nothing(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        lines = run("demo", "--batches", "4").splitlines()
        left = [int(match[1]) for line in lines if (match := re.match(r"batches left +(\d+) ", line))]
        assert left == [3, 2, 1, 0]
        in_process = run("demo", "--local", "--batches", "4").splitlines()
        assert figures(lines[-1]) == figures(in_process[-1])
        assert lines[-10:-1] == in_process[-10:-1]
        assert list(tmp_path.glob("weir-demo-*")) == []

    def test_needs_spark_unless_it_is_local(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("weir.cli.run.find_spec", lambda name: None)
        with pytest.raises(QueryError, match=r"pip install 'weir-streams\[spark\]', or .*weir demo --local"):
            run("demo")


class TestFigures:
    PROGRESS: ClassVar[dict[str, Any]] = {
        "batchId": 3,
        "numInputRows": 1000,
        "durationMs": {"triggerExecution": 500},
        "weir": {
            "numOutputRows": 250,
            "numRowsShed": 1234,
            "estimatedRecall": 0.976,
            "watermark": 10_000_000,
            "newest": {"a": 12_500_000, "b": 11_000_000},
            "streams": {
                "a": {"numRowsDroppedByWatermark": 1, "numRowsAhead": 0},
                "b": {"numRowsDroppedByWatermark": 2, "numRowsAhead": 4},
            },
            "state": {"a": {"numRowsTotal": 5000, "memoryUsedBytes": 3 << 20}},
        },
    }

    def test_show_a_batch(self) -> None:
        assert BatchFigures.of(self.PROGRESS).cells(trigger=1_000_000) == {
            "batch": "3",
            "in/s": "2,000",
            "out/s": "500",
            "seconds": "0.50 of 1",
            "state rows": "5,000",
            "state MiB": "3.0",
            "late": "3",
            "ahead": "4",
            "delay s": "2.5",
            "shed": "1,234",
            "recall": "98%",
        }

    def test_show_what_is_not_known_as_such(self) -> None:
        unknown = dict.fromkeys(("numOutputRows", "numRowsShed", "estimatedRecall", "watermark"))
        joined = {**self.PROGRESS["weir"], **unknown}
        cells = BatchFigures.of({**self.PROGRESS, "weir": joined}).cells(trigger=None)
        assert (cells["out/s"], cells["delay s"], cells["seconds"]) == ("?", "?", "0.50")
        assert (cells["shed"], cells["recall"]) == ("?", "?")


class TestRun:
    def test_names_a_file_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(QueryError, match=r"cannot read '.*no\.sql': No such file"):
            run("run", str(tmp_path / "no.sql"))

    def test_names_the_file_and_line_of_a_mistake(self, tmp_path: Path) -> None:
        (tmp_path / "job.sql").write_text("\nDELETE FROM x")
        with pytest.raises(QueryError, match=r"job\.sql: line 2: expected CREATE STREAM or SELECT"):
            run("explain", str(tmp_path / "job.sql"))

    def test_settings_are_pairs(self, tmp_path: Path) -> None:
        with pytest.raises(QueryError, match="--conf takes key=value"):
            run("run", "job.sql", "--conf", "spark.master")


class TestMarket:
    def test_makes_each_batch_from_the_seed_alone(self) -> None:
        assert Market(1).batch("tokyo", 5).equals(Market(1).batch("tokyo", 5))
        assert not Market(1).batch("tokyo", 5).equals(Market(2).batch("tokyo", 5))
        assert not Market(1).batch("tokyo", 5).equals(Market(1).batch("london", 5))

    def test_has_the_schema_it_promises(self) -> None:
        assert Market().batch("nyc", 0).schema == TRADES

    def test_writes_files_whose_times_follow_their_numbers(self, tmp_path: Path) -> None:
        Market(1, 5).write(tmp_path, 3)
        files = sorted((tmp_path / "tokyo").iterdir(), key=lambda file: file.stat().st_mtime)
        assert [file.name for file in files] == ["00000.parquet", "00001.parquet", "00002.parquet"]
        assert pq.read_table(files[2]).equals(Market(1, 5).batch("tokyo", 2))

    def test_refuses_silence(self) -> None:
        with pytest.raises(QueryError, match="at least one row per second"):
            Market(rows_per_second=0)


class TestErrors:
    def test_a_mistake_of_the_user_is_one_sentence_and_exit_code_2(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def refuse(**_: object) -> None:
            raise QueryError("unknown stream 'ordrs'; did you mean [orders]?")

        monkeypatch.setattr(weir, "join", refuse)
        monkeypatch.setattr(sys, "argv", ["weir", "demo", "--local"])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        assert capsys.readouterr().err == "unknown stream 'ordrs'; did you mean [orders]?\n"

    def test_an_unknown_command_names_itself(self) -> None:
        result = CliRunner().invoke(app, ["dmeo"])
        assert result.exit_code == 2
        assert "dmeo" in result.output


def test_version() -> None:
    assert run("--version") == f"weir {version('weir-streams')}\n"
