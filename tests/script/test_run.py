"""`weir run` and `weir explain` over small jobs, on one Spark session."""

from __future__ import annotations

import os
import shutil
import signal
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from weir.cli import run as jobs
from weir.cli.app import app
from weir.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example, in a folder of its own."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    text = (tmp_path / "examples/stocks.sql").read_text()
    for folder in ("examples/trades", "out/"):
        # The driver's Java does not follow a change of folder.
        text = text.replace(f"'{folder}", f"'{tmp_path}/{folder}")
    file = tmp_path / "stocks.sql"
    file.write_text(text)
    return file


def run(*args: str) -> str:
    result = CliRunner().invoke(app, args, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def results(folder: Path) -> list[dict[str, Any]]:
    rows = [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return sorted(rows, key=lambda row: row["bought"])


def test_once_takes_what_is_there_and_the_next_run_goes_on(job: Path, tmp_path: Path) -> None:
    first = run("run", str(job), "--once", "--partitions", "2")
    assert [line.split()[:2] for line in first.splitlines()] == [["batch", "0"], ["done:", "7"]]
    assert first.splitlines()[-1] == "done: 7 rows in, 2 results"
    found = results(tmp_path / "out/stocks")
    assert found == [
        {"symbol": "GOOG", "bought": 139.0, "sold": 141.2},
        {"symbol": "GOOG", "bought": 140.5, "sold": 141.2},
    ]

    (tmp_path / "examples/trades/nyc/2.csv").write_text("2024-01-02 12:00:37,MSFT,371.1\n")
    (tmp_path / "examples/trades/london/2.csv").write_text("2024-01-02 12:00:41,MSFT,372.4\n")
    second = run("run", str(job), "--once", "--partitions", "2")
    assert second.splitlines()[-1] == "done: 2 rows in, 1 results"
    assert results(tmp_path / "out/stocks") == [*found, {"symbol": "MSFT", "bought": 371.1, "sold": 372.5}]


class Impatient(StringIO):
    """A screen whose reader asks for the end, once, as soon as a batch is shown."""

    asked = False

    def write(self, text: str) -> int:
        if " of 1 " in text and not self.asked:
            self.asked = True
            os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


def test_runs_until_it_is_stopped(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Impatient()
    monkeypatch.setattr(jobs, "Console", partial(Console, file=screen, force_terminal=True, width=140))
    jobs.run(job, partitions=1)
    assert screen.getvalue().endswith("stopped: 7 rows in, 2 results\n")


def test_explains_without_touching_the_sources(job: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "examples/trades")
    text = run("explain", str(job), "--partitions", "3")
    assert f"sources\n  nyc: csv path='{tmp_path}/examples/trades/nyc'\n" in text
    assert f"sink\n  parquet path='{tmp_path}/out/stocks'" in text
    assert "every 1 second" in text
    assert "n: time ts, window 10 seconds, kept 10 seconds, late 5 seconds" in text
    assert "over 3 partitions by symbol" in text
    assert not (tmp_path / "out").exists()


def test_explains_a_spread_of_streams_and_says_what_a_run_needs(job: Path) -> None:
    text = job.read_text().replace("OPTIONS (checkpointLocation", "OPTIONS (other")
    job.write_text(text.replace("TRIGGER", "SPREAD psp TRIGGER"))
    text = run("explain", str(job), "--partitions", "3")
    assert "over 3 partitions by slices of time" in text
    assert "\n  no checkpoint yet: add OPTIONS (checkpointLocation 'some/folder') after INTO, or run" in text


@pytest.mark.parametrize("command", ["explain", "run"])
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("INTO parquet", "INTO parqet", r"unknown sink format 'parqet'; did you mean 'parquet'\?"),
        ("INTO parquet", "INTO text", r"the text format holds one string column"),
        ("INTO parquet", "INTO jdbc", r"the jdbc sink cannot be opened: Option 'url' is required"),
        ("/out/stocks' ", "/stocks.sql' ", r"the path .* cannot be written: .*stocks\.sql is a file, not a"),
        ("/out/stocks' ", "/out/stocks-state' ", r"path and checkpointLocation are one folder"),
        ("(checkpointLocation", "(compresion 'no', checkpointLocation", r".* did you mean 'compression'\?"),
        ("(checkpointLocation", "(checkpoint", r"unknown option 'checkpoint'; did you mean 'checkpointLocat"),
    ],
)
def test_explain_and_run_tell_the_same_of_a_sink(
    job: Path, command: str, old: str, new: str, expected: str
) -> None:
    text = job.read_text()
    assert old in text
    job.write_text(text.replace(old, new))
    with pytest.raises(QueryError, match=rf"^{job}: line 19, in INTO: {expected}"):
        run(command, str(job))
    assert command == "run" or not (job.parent / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("OPTIONS (checkpointLocation", "OPTIONS (other", r"line 19, in INTO: .*--checkpoint some/folder"),
        ("price DOUBLE", "price DOUBEL", r"line 5, in stream 'nyc': Unsupported data type .DOUBEL."),
        ("USING csv", "USING cvs", r"line 5, in stream 'nyc': unknown source format 'cvs'; .*'csv'\?"),
        ("/trades/tokyo'", "/trades/kyoto'", r"line 8, in stream 'tokyo': Path does not exist: .*kyoto"),
        ("t.price >", "t.prize >", r"line 14, in the SELECT: unknown column 'prize'"),
        ("TIMESTAMP BY ts", "TIMESTAMP BY symbol", r"line 14, in the SELECT: .*symbol"),
    ],
)
def test_mistakes_name_the_file_and_the_line(job: Path, old: str, new: str, expected: str) -> None:
    job.write_text(job.read_text().replace(old, new))
    with pytest.raises(QueryError, match=rf"^{job}: {expected}"):
        run("run", str(job), "--once")


def test_a_failing_query_says_why(job: Path, tmp_path: Path) -> None:
    run("run", str(job), "--once", "--partitions", "1")
    state = tmp_path / "out/stocks-state/weir"
    for slices in (state / "slices").glob("*.arrow"):
        slices.unlink()
    (tmp_path / "examples/trades/nyc/2.csv").write_text("2024-01-02 12:00:37,MSFT,371.1\n")
    with pytest.raises(QueryError, match=r"query failed: .*slice .* is missing.*\(weir: batch 1 failed"):
        run("run", str(job), "--once", "--partitions", "1")
    (state / "manifests/0-0001.json").write_text("{}")
    with pytest.raises(QueryError, match=r"stocks\.sql: .*manifests/0-0001\.json is damaged; restore it"):
        run("run", str(job), "--once", "--partitions", "1")
