"""Whatever is lost, damaged, swapped or foreign in a checkpoint: a start says so, and touches nothing.

Every case spoils our or Spark's files in a copy of one checkpoint; `start` refuses before Spark begins.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import weir
from weir.spark.errors import ChangedQueryError, DamagedStateError
from weir.spark.join import SparkJoin
from weir.spark.sealed_json import seal

from .streams import (
    PAIR,
    Feed,
    add_batch,
    expected,
    generate,
    read_bag,
    repeat_last_batch,
    run,
    state_file,
    write_feed,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ID = "0123456789ab"


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Feed, Path]:
    """Two batches done, and a third there to come."""
    folder = tmp_path_factory.mktemp("stopped")
    batches = generate(2, 3, 40, 5, seed=2)
    feed = write_feed(folder / "in", {name: tables[:2] for name, tables in batches.items()})
    run(weir.join(**feed.frames(spark), **PAIR, partitions=2), folder / "ckpt", folder / "out")
    return add_batch(feed, {name: tables[2] for name, tables in batches.items()}), folder


@pytest.fixture
def checkpoint(stopped: tuple[Feed, Path], tmp_path: Path) -> Path:
    """A copy of the checkpoint, that may be spoiled."""
    shutil.copytree(stopped[1] / "ckpt", tmp_path / "ckpt")
    return tmp_path / "ckpt"


@pytest.fixture(scope="module")
def join(stopped: tuple[Feed, Path], spark: SparkSession) -> SparkJoin:
    return weir.join(**stopped[0].frames(spark), **PAIR, partitions=2)


def change(path: Path, **seals: Any) -> None:
    """Change what a sealed file says, so that its checksum is right."""
    body = json.loads(json.loads(path.read_text())["body"])
    path.write_bytes(seal({**body, **seals}))


def change_content(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    body = json.loads(json.loads(path.read_text())["body"])
    change(body["content"])
    path.write_bytes(seal(body))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def copy_state(checkpoint: Path, kind: str, source: int, target: int) -> None:
    file = state_file(checkpoint, kind, source)
    shutil.copy(file, file.with_name(file.name.replace(f"{source}-", f"{target}-", 1)))


def manifest(checkpoint: Path) -> Path:
    return state_file(checkpoint, "manifest", 1)


def job(checkpoint: Path) -> Path:
    return next((checkpoint / "weir/jobs").glob("*.json"))


def forget_spark(checkpoint: Path) -> None:
    for path in checkpoint.iterdir():
        if path.name != "weir":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def name_foreign_slice(content: dict[str, Any]) -> None:
    content["manifest"]["parts"][0][1]["slices"][0]["file"] = "../../../precious"


def swap_decisions(checkpoint: Path) -> None:
    repeat_last_batch(checkpoint)
    copy_state(checkpoint, "decision", 0, 1)


def swap_offsets(checkpoint: Path) -> None:
    """A batch that had begun would be repeated with other rows."""
    repeat_last_batch(checkpoint)
    manifest(checkpoint).unlink()
    replace_entry(checkpoint / "offsets", 1, 0)


def replace_entry(folder: Path, entry: int, by: int) -> None:
    shutil.copy(folder / str(by), folder / str(entry))
    shutil.copy(folder / f".{by}.crc", folder / f".{entry}.crc")


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "manifest damaged": (lambda c: flip(manifest(c)), "manifests/1-0001.json is damaged"),
    "manifest empty": (lambda c: manifest(c).write_bytes(b""), "manifests/1-0001.json is damaged"),
    "manifest gone": (lambda c: manifest(c).unlink(), r"manifests/1-\*.json is missing, and Spark has"),
    "manifest of an earlier batch": (
        lambda c: copy_state(c, "manifest", 0, 1),
        "manifests/1-0001.json belongs to another batch: 0 instead of 1",
    ),
    "manifest under a later number": (
        lambda c: copy_state(c, "manifest", 1, 5),
        "manifests/5-0001.json belongs to another batch: 1 instead of 5",
    ),
    "manifest of another query": (
        lambda c: change(manifest(c), id=ID),
        f"manifests/1-0001.json belongs to another query: {ID} instead of",
    ),
    "manifest of another version": (
        lambda c: change(manifest(c), version=99),
        r"manifests/1-0001.json was written by another version of weir \(format 99, and this one reads \d+\)",
    ),
    "manifest with an unknown key": (
        lambda c: change_content(manifest(c), lambda content: content["manifest"].update(colour=1)),
        "manifests/1-0001.json was written by another version of weir: Manifest has no colour",
    ),
    "manifest of another shape": (
        lambda c: change(manifest(c), content=[1, 2]),
        "manifests/1-0001.json was written by another version of weir: ManifestRecord lacks",
    ),
    "a decision as manifest": (
        lambda c: shutil.copy(state_file(c, "decision", 1), manifest(c)),
        "manifests/1-0001.json is another kind of file: decision instead of manifest",
    ),
    "slice outside": (
        lambda c: change_content(manifest(c), name_foreign_slice),
        "manifests/1-0001.json names '../../../precious', which is not the name of a slice file",
    ),
    "decisions swapped": (swap_decisions, "decisions/1-0001.json belongs to another batch: 0 instead of 1"),
    "job damaged": (lambda c: flip(job(c)), "jobs/0001.json is damaged"),
    "jobs gone": (lambda c: shutil.rmtree(c / "weir/jobs"), "weir/jobs is missing or empty, which says"),
    "state gone": (
        lambda c: shutil.rmtree(c / "weir"),
        "weir's state in .*/ckpt/weir is missing, and Spark has finished batch 1 in",
    ),
    "Spark's logs gone": (forget_spark, "ckpt/commits is empty or missing, and weir has finished batch 1 in"),
    "Spark's offsets gone": (
        lambda c: shutil.rmtree(c / "offsets"),
        "ckpt/offsets/0 is missing, an entry of Spark's log that batch 1 was built on",
    ),
    "Spark's commits gone": (lambda c: shutil.rmtree(c / "commits"), "ckpt/commits is empty or missing"),
    "Spark's sources gone": (
        lambda c: shutil.rmtree(c / "sources"),
        "ckpt/sources/0/0 is missing, an entry of Spark's log",
    ),
    "an old entry of a source damaged": (
        lambda c: flip(c / "sources/1/0"),
        "ckpt/sources/1/0 is not the entry of Spark's log that batch 1 was built on",
    ),
    "entry of a source swapped": (
        lambda c: replace_entry(c / "sources/0", 1, 0),
        "ckpt/sources/0/1 is not the entry of Spark's log that batch 1 was built on",
    ),
    "offsets of a begun batch swapped": (
        swap_offsets,
        "ckpt/offsets/1 is not the entry of Spark's log that batch 1 was built on",
    ),
    "Spark's metadata damaged": (
        lambda c: (c / "metadata").write_text('{"id":'),
        "ckpt/metadata, where Spark keeps its query's id, is damaged",
    ),
    "Spark's metadata of another query": (
        lambda c: (c / "metadata").write_text('{"id":"1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"}'),
        "ckpt/metadata is not the entry of Spark's log that batch 1 was built on",
    ),
    "Spark's metadata gone": (lambda c: (c / "metadata").unlink(), "ckpt/metadata is missing"),
}  # fmt: skip

# Where no batch is left to go back to, a repair is not advised.
LOST = {
    SPOILED[name][1]
    for name in (
        "job damaged", "jobs gone", "state gone", "Spark's logs gone", "Spark's commits gone",
        "Spark's metadata damaged", "Spark's metadata of another query", "Spark's metadata gone",
    )
}  # fmt: skip
REPAIR_ADVICE = "by: weir state repair CHECKPOINT, or start with a new checkpointLocation"
LOST_ADVICE = "; restore it, or start with a new checkpointLocation, which reads the streams again"


@pytest.mark.parametrize(("spoil", "says"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_checkpoint_is_refused_in_a_sentence(
    spoil: Callable[[Path], object], says: str, checkpoint: Path, join: SparkJoin, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    spoil(checkpoint)
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    with pytest.raises(DamagedStateError, match=says) as error:
        run(join, checkpoint, tmp_path / "out")
    said = str(error.value)
    advice = LOST_ADVICE if says in LOST else REPAIR_ADVICE
    assert said.endswith(advice) and "\n" not in said
    assert precious.exists() and not list((tmp_path / "out").glob("part-*"))
    ours = {path for path in checkpoint.rglob("*") if path.is_file()} - {checkpoint / "weir/lock"}
    assert {path: path.read_bytes() for path in ours} == {p: b for p, b in before.items() if p in ours}


def test_a_checkpoint_of_an_older_format_is_refused(
    checkpoint: Path, join: SparkJoin, tmp_path: Path
) -> None:
    shutil.rmtree(checkpoint / "weir/jobs")
    (checkpoint / "weir/job.json").write_bytes(seal({"version": 5}))
    with pytest.raises(ChangedQueryError, match="has format 5 and this version of weir reads format"):
        run(join, checkpoint, tmp_path / "out")


def test_late_files_of_an_older_driver_are_ignored(
    checkpoint: Path, stopped: tuple[Feed, Path], join: SparkJoin, spark: SparkSession, tmp_path: Path
) -> None:
    """Batch 2 was run in epoch 2, then the driver of epoch 1 wakes up: what it writes counts no more."""
    shutil.copytree(stopped[1] / "out", tmp_path / "out")
    shutil.rmtree(tmp_path / "out/_weir")
    run(join, checkpoint, tmp_path / "out")
    answer = expected(stopped[0].tables(), **PAIR)
    assert sum(answer.values()) > 100 and read_bag(tmp_path / "out") == answer
    for kind in ("decision", "manifest"):
        newest = state_file(checkpoint, kind, 2)
        assert newest.name == "2-0002.json"
        shutil.copy(newest, newest.with_name("2-0001.json"))
        change(newest.with_name("2-0001.json"), epoch=1)
    lost = newest.with_name("2-0001.json")
    change_content(lost, lambda content: name_lost_slices(content["manifest"]))
    change_content(state_file(checkpoint, "decision", 2).with_name("2-0001.json"), give_other_reason)
    repeat_last_batch(checkpoint)
    query = run(join, checkpoint, tmp_path / "out")
    assert query.lastProgress is not None and query.lastProgress["batchId"] == 2
    assert query.lastProgress["weir"]["decision"]["reason"] == "as requested"
    assert read_bag(tmp_path / "out") == answer
    assert state_file(checkpoint, "manifest", 2).name == "2-0003.json"


def name_lost_slices(manifest: dict[str, Any]) -> None:
    for _, part in manifest["parts"]:
        for entry in part["slices"]:
            entry["file"] = "000000002-0000-00-0001-0123456789ab.arrow"


def give_other_reason(content: dict[str, Any]) -> None:
    content["decision"]["reason"] = "late"
