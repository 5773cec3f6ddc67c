"""Queries that share a folder or a table touch their own files only; DuckDB says what must be there."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import weir
from weir.errors import QueryError
from weir.spark.filesystem import LocalFolder
from weir.spark.join import SparkJoin
from weir.spark.result_log import ResultLog
from weir.spark.result_names import ResultNames

from .streams import (
    PAIR,
    Feed,
    add_batch,
    bag,
    finish,
    generate,
    pair_feed,
    read_bag,
    repeat_last_batch,
    run,
    write_feed,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

JOINED = """
    SELECT a.k, a.v AS av, b.v AS bv, a.id AS aid, b.id AS bid FROM a, b
    WHERE a.k = b.k AND a.v <= b.v AND a.ts < b.ts + INTERVAL 8 SECONDS AND b.ts < a.ts + INTERVAL 8 SECONDS
"""


class KilledError(Exception):
    """Stands for the death of a driver."""


def ask(feed: Feed) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in feed.tables().items():
            connection.register(name, table)
        return bag(connection.sql(JOINED).to_arrow_table())


def define(feed: Feed, spark: SparkSession) -> SparkJoin:
    return weir.join(**feed.frames(spark), **PAIR, partitions=2)


def list_results(out: Path) -> list[str]:
    return sorted(path.name for path in out.iterdir() if path.name.startswith("part-"))


def die_after_a_move(patched: pytest.MonkeyPatch) -> None:
    move, moved = LocalFolder.move, list[str]()

    def move_one(folder: LocalFolder, source: str, target: str) -> None:
        is_result = target.startswith("part-")
        if is_result and moved:
            raise KilledError
        moved.extend([target] if is_result else [])
        move(folder, source, target)

    patched.setattr(LocalFolder, "move", move_one)


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_two_queries_share_a_folder_through_kills_and_repeats(
    format: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = {name: pair_feed(tmp_path / name / "in", 2, seed) for seed, name in enumerate(("one", "two"))}
    out = tmp_path / "out"

    def start(name: str) -> None:
        run(define(feeds[name], spark), tmp_path / name / "ckpt", out, format)

    out.mkdir()
    foreign = [out / "_part-000000000-0000-mine.parquet", out / "_batch-notes"]
    for path in foreign:
        path.write_text("not yours")
    for name in feeds:
        with monkeypatch.context() as patched, pytest.raises(Exception, match="KilledError"):
            die_after_a_move(patched)
            start(name)
    assert len(list_results(out)) == 2, "each has published one of two files of its first batch"
    for name in feeds:
        start(name)
    answer = ask(feeds["one"]) + ask(feeds["two"])
    assert answer.total() > 100 and read_bag(out, format) == answer
    published = list_results(out)
    for name in feeds:
        repeat_last_batch(tmp_path / name / "ckpt")
        start(name)
    assert read_bag(out, format) == answer
    assert list_results(out) == published
    hidden = {path.name for path in out.iterdir()} - set(published)
    assert hidden == {"_weir", *(path.name for path in foreign)}
    # The first job once more, from the beginning: its results are there a second time.
    run(define(feeds["one"], spark), tmp_path / "anew", out, format)
    assert read_bag(out, format) == answer + ask(feeds["one"])


def test_two_queries_share_a_folder_with_a_log(spark: SparkSession, tmp_path: Path) -> None:
    folder = LocalFolder(f"file:{tmp_path}", str(tmp_path))
    logs = {letter: ResultLog(spark, folder, ResultNames(letter * 12)) for letter in "ab"}

    def write(letter: str, batch: int) -> list[str]:
        name = ResultNames(letter * 12).publish(batch, 0, "json")
        folder.write(name, f'{{"from": "{letter}{batch}"}}'.encode())
        return [name]

    written = {(letter, batch): write(letter, batch) for batch in (0, 1) for letter in "ab"}
    for (letter, batch), names in written.items():
        assert not logs[letter].holds(batch)
        logs[letter].add(batch, names)
    again = {letter: ResultLog(spark, folder, ResultNames(letter * 12)) for letter in "ab"}
    for log in [*logs.values(), *again.values()]:
        assert log.holds(1) and not log.holds(0), "a repeat would be logged twice"
    logs["a"].add(2, write("a", 2))
    again["a"].add(2, write("a", 2))  # by another driver, which has not seen it
    seen = Counter(row["from"] for row in spark.read.schema("`from` STRING").json(str(tmp_path)).collect())
    assert seen == Counter(["a0", "b0", "a1", "b1", "a2"])


def test_two_queries_share_a_table(spark: SparkSession, tmp_path: Path) -> None:
    feeds = {name: pair_feed(tmp_path / name / "in", 1, seed) for seed, name in enumerate(("one", "two"))}
    spark.sql("DROP TABLE IF EXISTS weir_shared")
    try:
        for _ in range(2):
            for name, feed in feeds.items():
                writer = define(feed, spark).writeStream.option("path", str(tmp_path / "table"))
                writer = writer.option("checkpointLocation", str(tmp_path / name / "ckpt"))
                finish(writer.trigger(availableNow=True).toTable("weir_shared"))
                repeat_last_batch(tmp_path / name / "ckpt")
        answer = ask(feeds["one"]) + ask(feeds["two"])
        assert answer.total() > 50 and bag(spark.table("weir_shared").toArrow()) == answer
        shutil.copytree(tmp_path / "one" / "ckpt", tmp_path / "copy")
        writer = define(feeds["one"], spark).writeStream.option("checkpointLocation", str(tmp_path / "copy"))
        with pytest.raises(QueryError, match=r"copy is a copy of .*one/ckpt.*new checkpointLocation"):
            writer.trigger(availableNow=True).toTable("weir_shared")
    finally:
        spark.sql("DROP TABLE IF EXISTS weir_shared")


def test_a_copy_is_refused_and_a_moved_checkpoint_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    batches = generate(2, 2, 40, 5, seed=1)
    feed = write_feed(tmp_path / "in", {name: tables[:1] for name, tables in batches.items()})
    checkpoint, out = tmp_path / "ckpt", tmp_path / "out"
    run(define(feed, spark), checkpoint, out)
    assert read_bag(out) == ask(feed)
    feed = add_batch(feed, {name: tables[1] for name, tables in batches.items()})
    (record,) = (out / "_weir").iterdir()

    def refuse(location: Path) -> str:
        before = list_results(out)
        with pytest.raises(QueryError, match=f"delete file:{record}") as error:
            run(define(feed, spark), location, out)
        assert list_results(out) == before
        return str(error.value)

    shutil.copytree(checkpoint, tmp_path / "copy")
    # What the original is writing is not for the copy to delete.
    hidden = out / f"_part-{record.name}-000000009-0000-0001-0123456789ab.parquet"
    hidden.touch()
    assert f"copy is a copy of file:{checkpoint}," in refuse(tmp_path / "copy")
    assert hidden.exists()
    checkpoint.rename(tmp_path / "moved")
    assert f"was at file:{checkpoint}, where nothing is now" in refuse(tmp_path / "moved")
    record.unlink()
    run(define(feed, spark), tmp_path / "moved", out)
    assert read_bag(out) == ask(feed)
    assert f"copy is a copy of file:{tmp_path / 'moved'}," in refuse(tmp_path / "copy")
    # A link to the checkpoint is no copy, and a damaged record says nothing.
    (tmp_path / "link").symlink_to(tmp_path / "moved")
    record.write_bytes(record.read_bytes()[:20])
    for name in ("moved", "link"):
        run(define(feed, spark), tmp_path / name, out)
    assert read_bag(out) == ask(feed)
