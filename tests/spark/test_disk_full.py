"""A full disk ends a query with one sentence, and a start after room is made goes on exactly."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import weir
from weir.options import Durability
from weir.spark import filesystem
from weir.spark.errors import DiskFullError
from weir.spark.failure import find_own_error
from weir.spark.join import SparkJoin

from .streams import Feed, bag, generate, read_bag, rows, run, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ASKED: dict[str, Any] = {"on": "a.k = b.k", "within": "8 seconds", "select": "a.id AS aid, b.id AS bid"}
JOINED = """
    SELECT a.id AS aid, b.id AS bid FROM a, b
    WHERE a.k = b.k AND a.ts < b.ts + INTERVAL 8 SECONDS AND b.ts < a.ts + INTERVAL 8 SECONDS
"""
ROWS = 500  # of one key: slices of about 15 KB, and results of more than 100


def ask(feed: Feed) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in feed.tables().items():
            connection.register(name, table)
        return bag(connection.sql(JOINED).to_arrow_table())


def define(feed: Feed, spark: SparkSession) -> SparkJoin:
    return weir.join(**feed.frames(spark), **ASKED, partitions=1)


def list_files(folder: Path) -> list[Path]:
    return [Path(below) / name for below, _, names in os.walk(folder) for name in names]


def fail(join: SparkJoin, folder: Path) -> str:
    with pytest.raises(DiskFullError) as error:
        run(join, folder / "ckpt", folder / "out")
    said = str(error.value)
    assert said.count("\n") == 0 and "start again" in said
    return said


def limit_workers(spark: SparkSession, patched: pytest.MonkeyPatch, folder: Path, blocks: int) -> None:
    """Let new workers write files of so many blocks of 512 bytes, as if that were all the room there is."""
    python = folder / f"python-{blocks}"  # Spark starts new workers for it
    python.write_text(f'#!/bin/sh\nulimit -f {blocks}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    patched.setattr(spark.sparkContext, "pythonExec", str(python))


def test_workers_without_room(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows([n / 100 for n in range(ROWS)], [1] * ROWS)
    feed = write_feed(tmp_path / "in", {"a": [table], "b": [table]})
    for blocks, where in {2: "ckpt/weir/slices/", 64: "out/_part-"}.items():
        with monkeypatch.context() as patched:
            limit_workers(spark, patched, tmp_path, blocks)
            assert f"no room to write file:{tmp_path}/{where}" in fail(define(feed, spark), tmp_path)
    left = [path.name for path in (tmp_path / "out").iterdir()]
    assert left == ["_weir"], "unfinished files take the room that is left"
    run(define(feed, spark), tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == ask(feed)


def limit_driver(patched: pytest.MonkeyPatch, is_full: Callable[[Path, bytes], bool]) -> None:
    write = filesystem._write_file

    def write_if_room(path: Path, data: bytes, *how: Any) -> None:
        if is_full(path, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, data, *how)

    patched.setattr(filesystem, "_write_file", write_if_room)


def test_a_driver_without_room(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = write_feed(tmp_path / "in", generate(2, 1, 40, 5, seed=4))
    kinds = ("out/_weir", "ckpt/weir/slices", "weir/epochs", "weir/jobs", "weir/decisions", "weir/manifests")
    for kind in kinds:
        with monkeypatch.context() as patched:
            limit_driver(patched, lambda path, data, kind=kind: kind in str(path))
            assert f"no room to write file:{tmp_path}/" in fail(define(feed, spark), tmp_path)
    run(define(feed, spark), tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == ask(feed)


def test_a_start_makes_room_before_it_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = generate(2, 2, 40, 5, seed=5)
    feed = write_feed(tmp_path / "in", {name: tables[:1] for name, tables in batches.items()})
    run(define(feed, spark), tmp_path / "ckpt", tmp_path / "out")
    (record,) = (tmp_path / "out/_weir").iterdir()
    used = sum(path.stat().st_size for path in list_files(tmp_path))
    left = [
        tmp_path / f"out/_part-{record.name}-000000001-0000-0001-0123456789ab.parquet",
        tmp_path / f"out/_batch-{record.name}-000000001-0001/part-0.json",
        tmp_path / "ckpt/weir/slices/000000001-0000-00-0001-0123456789ab.arrow",
    ]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(1 << 20))
    foreign = tmp_path / "out/_part-ba9876543210-000000001-0000-0001-0123456789ab.parquet"
    shutil.copy(left[0], foreign)
    room = used + foreign.stat().st_size + (1 << 19)

    def is_full(path: Path, data: bytes) -> bool:
        return sum(path.stat().st_size for path in list_files(tmp_path)) + len(data) > room

    limit_driver(monkeypatch, is_full)
    run(define(feed, spark), tmp_path / "ckpt", tmp_path / "out")
    assert not any(path.exists() for path in left) and foreign.exists()
    assert read_bag(tmp_path / "out") == ask(feed)


def test_a_full_disk_that_spark_comes_upon() -> None:
    java = RuntimeError("java.io.IOException: No space left on device\n\tat java.base/java.io")
    assert "spark.local.dir" in str(find_own_error(java))
    assert find_own_error(RuntimeError("java.io.IOException: Broken pipe")) is None


@pytest.mark.parametrize("durability", ["power", "process"])
def test_a_first_entry_that_spark_could_not_finish(
    durability: Durability, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark leaves it beside its offsets, and refuses to begin where there are files before batch 0."""
    feed = write_feed(tmp_path / "in", generate(2, 1, 40, 5, seed=7))
    join = weir.join(**feed.frames(spark), **ASKED, partitions=1, durability=durability)
    with monkeypatch.context() as patched:
        limit_driver(patched, lambda path, data: "weir/jobs" in str(path))
        fail(join, tmp_path)
    (tmp_path / "ckpt/offsets").mkdir()
    unfinished = tmp_path / "ckpt/offsets/.0.7937f01a-11df-4f9a-8755-0ac2996bd59e.tmp"
    for path in (unfinished, unfinished.with_name(f".{unfinished.name}.crc")):
        path.touch()
    run(join, tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == ask(feed)
    assert not list((tmp_path / "ckpt/offsets").glob(".*.tmp*"))
