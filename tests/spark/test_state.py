"""`weir state` shows a checkpoint, and takes a damaged one back to a batch that is whole."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import weir
from weir.cli.app import app
from weir.spark.filesystem import LocalFolder

from .streams import Feed, copy_query, read_bag
from .torn import answer, go_on, interrupted, tear

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

LOCK = """import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()"""


def state(*args: str) -> str:
    result = CliRunner().invoke(app, ["state", *args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Feed, Path]:
    """Batches 0 to 2 are done, batch 3 has not begun."""
    folder = tmp_path_factory.mktemp("stopped")
    feed = interrupted(spark, folder, 3, "vacuum")
    deadline = time.monotonic() + 20
    while "driver      not running" not in state("show", str(folder / "ckpt")):
        assert time.monotonic() < deadline, "the lock of a query that has ended is released soon"
        time.sleep(0.1)
    return feed, folder


def test_show_says_what_is_there(stopped: tuple[Feed, Path]) -> None:
    lines = dict(line.split(maxsplit=1) for line in state("show", str(stopped[1] / "ckpt")).splitlines())
    assert lines["checkpoint"] == f"file:{stopped[1]}/ckpt"
    assert "ON a.k = b.k AND a.v <= b.v" in lines["query"]
    assert lines["streams"] == "a (8 seconds), b (8 seconds)"
    assert lines["plan"] == "(a b), hash over 2 partitions"
    assert lines["sink"] == f"parquet file:{stopped[1]}/out"
    assert lines["batches"] == "up to 2 committed"
    assert lines["driver"].startswith("not running; the last one: epoch 1, process ")
    assert lines["condition"] == "whole: the next start goes on"
    assert len(lines) <= 10


def test_a_whole_checkpoint_is_not_repaired(stopped: tuple[Feed, Path]) -> None:
    before = sorted((stopped[1] / "ckpt").rglob("*"))
    assert state("repair", str(stopped[1] / "ckpt")).startswith("nothing to repair: ")
    assert sorted((stopped[1] / "ckpt").rglob("*")) == before


def interrupt_at_manifests(folder: LocalFolder, name: str) -> None:
    if name.startswith("manifests/"):
        raise InterruptedError
    (Path(folder.uri.removeprefix("file:")) / name).unlink(missing_ok=True)


@pytest.mark.parametrize("damage", ["weir/manifests/2-*.json", "weir/slices/000000002-*", "offsets/2"])
def test_repair_says_what_it_would_delete(damage: str, stopped: tuple[Feed, Path], tmp_path: Path) -> None:
    copy_query(stopped[1], tmp_path)
    (path, *_) = (tmp_path / "ckpt").glob(damage)
    tear(path, "half")
    before = sorted(tmp_path.rglob("*"))
    assert f"damaged: file:{path} is damaged; " in state("show", str(tmp_path / "ckpt"))
    refused = CliRunner().invoke(app, ["state", "repair", str(tmp_path / "ckpt")], input="n\n")
    assert (
        f"damaged: file:{path} is damaged\ngoing back to batch 1, the newest that is whole; "
        in refused.output
    )
    assert refused.exit_code == 1 and sorted(tmp_path.rglob("*")) == before


def test_repair_goes_back_to_a_whole_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, out = interrupted(spark, tmp_path, 3, "build"), tmp_path / "out"
    checkpoint = str(tmp_path / "ckpt")
    tear(tmp_path / "ckpt/sources/1/2", "half")
    with pytest.raises(weir.QueryError, match="weir state repair"):
        go_on(spark, feed, tmp_path)
    results = list(out.glob("part-*-000000002-*"))
    assert results
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr(LocalFolder, "delete", interrupt_at_manifests)
        state("repair", checkpoint, "--yes")
    assert not any(path.exists() for path in results)
    said = state("repair", checkpoint, "--yes")
    assert "going back to batch 1, the newest that is whole; " in said
    assert f"0 result files in file:{out}\n" in said
    assert said.endswith("repaired: the next start goes on with batch 2\n")
    assert state("repair", checkpoint).startswith("nothing to repair")
    go_on(spark, feed, tmp_path)
    assert read_bag(out) == answer(feed)


@pytest.mark.parametrize(("swapped", "batch"), [(1, 3), (2, 2)], ids=["with an older", "with the one before"])
def test_repair_helps_where_decisions_are_swapped(
    swapped: int, batch: int, spark: SparkSession, tmp_path: Path
) -> None:
    feed = interrupted(spark, tmp_path, 3, "build")
    one, other = (tmp_path / f"ckpt/weir/decisions/{number}-0001.json" for number in (swapped, 3))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    with pytest.raises(weir.QueryError, match=r"belongs to another batch: .* weir state repair"):
        go_on(spark, feed, tmp_path)
    assert state("repair", str(tmp_path / "ckpt"), "--yes").endswith(f"goes on with batch {batch}\n")
    tear(tmp_path / f"ckpt/weir/manifests/{batch - 2}-0001.json", "half")  # nobody has to go back to it
    go_on(spark, feed, tmp_path)
    assert read_bag(tmp_path / "out") == answer(feed)


def test_mistakes_are_told_in_a_sentence(stopped: tuple[Feed, Path], tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    copy_query(stopped[1], damaged)

    def refusal(*args: str) -> str:
        with pytest.raises(weir.QueryError) as error:
            state(*args)
        return str(error.value)

    assert refusal("show", f"{tmp_path}/none") == (
        f"there is no folder {tmp_path}/none; give the checkpointLocation of a query"
    )
    assert "is not the checkpoint of a join" in refusal("repair", str(damaged / "out"))
    lock = damaged / "ckpt/weir/lock"
    with subprocess.Popen(
        [sys.executable, "-c", LOCK, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None and driver.stdout.readline() == "locked\n"
        assert "is in use: another driver (process " in refusal("repair", str(damaged / "ckpt"), "--yes")
        assert "running; " in state("show", str(damaged / "ckpt"))
    tear(damaged / "ckpt/weir/manifests/0-0001.json", "empty")
    for name in ("1-0001.json", "2-0001.json"):
        tear(damaged / "ckpt/weir/manifests" / name, "empty")
    assert "no earlier batch is whole; start with a new checkpointLocation" in refusal(
        "repair", str(damaged / "ckpt"), "--yes"
    )
