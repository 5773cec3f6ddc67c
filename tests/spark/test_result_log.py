"""The log of result files: what it loses at its end comes back, and a log of Spark's own is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.errors import DamagedStateError
from weir.spark.filesystem import LocalFolder
from weir.spark.output_owner import Owner, claim_folder
from weir.spark.result_log import ResultLog, forget_results
from weir.spark.result_names import ResultNames
from weir.spark.torn_logs import make_checksums

from .torn import tear

OWN, OTHER = ResultNames("a" * 12), ResultNames("b" * 12)
SPARKS_OWN = "part-00000-6c9f0fd2-7d2c-4a4a-8d3c-6a6a1fd6d0b5-c000.snappy.parquet"


def open_local(path: Path) -> LocalFolder:
    return LocalFolder(f"file:{path}", str(path))


def write_entry(folder: Path, name: str, files: list[str]) -> Path:
    """Write an entry of the log as Spark does."""
    lines = [json.dumps({"path": f"file://{folder}/{file}", "size": 1, "action": "add"}) for file in files]
    entry = folder / "_spark_metadata" / name
    entry.parent.mkdir(exist_ok=True)
    entry.write_text("\n".join(["v1", *lines]))
    entry.with_name(f".{name}.crc").write_bytes(make_checksums(entry.read_bytes()))
    return entry


def read_entry(entry: Path) -> list[str]:
    return [Path(json.loads(line)["path"]).name for line in entry.read_text().splitlines()[1:]]


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("damage", ["flipped", "half", "gone", "all gone"])
def test_what_the_log_has_lost_of_committed_batches_is_added_again(
    damage: str, spark: SparkSession, tmp_path: Path
) -> None:
    folder = open_local(tmp_path)
    files = {batch: [OWN.publish(batch, number, "json") for number in (0, 1)] for batch in range(4)}
    for name in [name for names in files.values() for name in names] + [OTHER.publish(7, 0, "json")]:
        folder.write(name, b"{}")
    log = ResultLog(spark, folder, OWN)
    for batch in range(3):
        log.add(batch, files[batch])
    entries = tmp_path / "_spark_metadata"
    if damage == "flipped":
        flip_a_bit(entries / "2")
    elif damage == "all gone":
        for entry in entries.iterdir():
            entry.unlink()
    else:
        tear(entries / "2", damage)
    for _ in range(2):
        log = ResultLog(spark, folder, OWN)
        log.restore(2, folder.names())  # batch 3 has published files, but is not committed
        assert log.holds(2) and not log.holds(3)
        assert [read_entry(entries / str(batch)) for batch in range(3)] == [
            files[batch] for batch in range(3)
        ]
        assert not (entries / "3").exists()


@pytest.mark.parametrize("name", ["0", "9.compact"])
def test_a_log_of_sparks_own_is_refused(name: str, tmp_path: Path) -> None:
    folder, spark = open_local(tmp_path), cast(SparkSession, None)
    write_entry(tmp_path, name, [SPARKS_OWN])
    tear(write_entry(tmp_path, "10" if name == "9.compact" else "1", [SPARKS_OWN]), "half")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(
        QueryError, match=r"has the log of a streaming query of Spark's own, .* another folder"
    ):
        claim_folder(spark, folder, Owner(OWN.id, "file:/ckpt"))
    assert sorted(tmp_path.rglob("*")) == before
    write_entry(tmp_path, name, [OWN.publish(0, 0, "json"), OTHER.publish(0, 0, "snappy.parquet")])
    claim_folder(spark, folder, Owner(OWN.id, "file:/ckpt"))


@pytest.mark.parametrize("damage", ["flipped", "half", "gone"])
def test_damage_before_the_end_of_the_log_is_named(damage: str, tmp_path: Path) -> None:
    names = [OWN.publish(batch, 0, "json") for batch in range(13)]
    write_entry(tmp_path, "3", names[3:4]).write_text("nobody reads it any more")
    write_entry(tmp_path, "9.compact", names[:10])
    damaged, _ = write_entry(tmp_path, "10", names[10:11]), write_entry(tmp_path, "11", names[11:12])
    newest = write_entry(tmp_path, "12", names[12:])
    if damage == "flipped":
        flip_a_bit(damaged)
    else:
        tear(damaged, damage)
    how = "missing" if damage == "gone" else "damaged"
    with pytest.raises(DamagedStateError, match=rf"_spark_metadata/10, .* is {how}; restore it"):
        claim_folder(cast(SparkSession, None), open_local(tmp_path), Owner(OWN.id, "file:/ckpt"))
    if damage == "half":
        with pytest.raises(DamagedStateError, match=r"_spark_metadata/10, .* is damaged; restore it"):
            forget_results(open_local(tmp_path), names[11:])
        assert read_entry(newest) == names[12:], "a repair that is refused has changed something"
    write_entry(tmp_path, "10", names[10:11])
    forget_results(open_local(tmp_path), names[11:])
    assert not read_entry(newest) and read_entry(damaged) == names[10:11]
