"""Profile one micro-batch of a small query on Spark: which files of weir run, and which objects they build.

The batch is watched from outside, at Spark's own interfaces: on the driver the function given to
`foreachBatch`, in the workers, which import this module, the functions given to `mapInArrow`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

SRC = Path(__file__).resolve().parents[1] / "src"
PACKAGE = "weir"
# The first batches import what later ones find loaded.
MEASURED_BATCH, BATCHES = 3, 5
START = 1_700_000_000


class Profile:
    """Records the files of the product that run in this thread, and the objects of its classes."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.objects: Counter[str] = Counter()
        self._root, self._package = f"{SRC / PACKAGE}{os.sep}", PACKAGE
        self._importing = 0

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        """Take note of a call; for `sys.setprofile`."""
        code = frame.f_code
        if code.co_name == "<module>":
            self._importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self._importing:
            if code.co_filename.startswith(self._root):
                self.files.add(code.co_filename.removeprefix(self._root))
            if code.co_name == "__init__" and code.co_argcount:
                self._count(type(frame.f_locals[code.co_varnames[0]]), code)

    def _count(self, kind: type, code: Any) -> None:
        is_most_derived = getattr(kind.__init__, "__code__", None) is code
        if is_most_derived and kind.__module__.split(".")[0] == self._package:
            self.objects[f"{kind.__module__}.{kind.__qualname__}"] += 1


class WatchedTask:
    """A task for `mapInArrow` that leaves the profile of its run in a folder."""

    def __init__(self, task: Callable[..., Any], folder: str) -> None:
        self._task, self._folder = task, folder

    def __call__(self, batches: Any) -> Iterator[Any]:
        """Run the task under the profile."""
        profile = Profile()
        sys.setprofile(profile)
        try:
            yield from self._task(batches)
        finally:
            sys.setprofile(None)
            path = Path(self._folder, f"{uuid.uuid4().hex}.json")
            path.write_text(json.dumps({"files": sorted(profile.files), "objects": profile.objects}))


def profile_query(spark: Any, budget: Any) -> tuple[Profile, Profile]:
    """Run a small folded query; return what its measured batch does on the driver and in the workers."""
    import weir

    driver, workers = Profile(), Profile()
    frames, writers = type(spark.range(1)), type(spark.readStream.format("rate").load().writeStream)
    map_in_arrow, foreach_batch = frames.mapInArrow, writers.foreachBatch
    with tempfile.TemporaryDirectory() as folder:
        (tasks := Path(folder, "tasks")).mkdir()
        running: list[int] = []

        def watch_tasks(self: Any, func: Any, *args: Any, **options: Any) -> Any:
            task = WatchedTask(func, str(tasks)) if running == [MEASURED_BATCH] else func
            return map_in_arrow(self, task, *args, **options)

        def watch_batches(self: Any, func: Any) -> Any:
            def run(rows: Any, batch: int) -> None:
                running[:] = [batch]
                sys.setprofile(driver if batch == MEASURED_BATCH else None)
                try:
                    func(rows, batch)
                finally:
                    sys.setprofile(None)

            return foreach_batch(self, run)

        reader = spark.readStream.schema("ts timestamp, k bigint, x double").option("maxFilesPerTrigger", 1)
        streams = {name: reader.parquet(write_stream(Path(folder, name))) for name in "abc"}
        on = "a.k = b.k AND b.k = c.k"
        joined = weir.join(**streams, on=on, within="2 seconds", partitions=2, budget=budget)
        with (
            patch.object(frames, "mapInArrow", watch_tasks),
            patch.object(writers, "foreachBatch", watch_batches),
        ):
            writer = joined.writeStream.format("parquet").option("checkpointLocation", f"{folder}/state")
            writer.trigger(availableNow=True).start(f"{folder}/results").awaitTermination()
        assert spark.read.parquet(f"{folder}/results").count() > 0, "the measured query found no results"
        for path in tasks.iterdir():
            told = json.loads(path.read_text())
            workers.files.update(told["files"])
            workers.objects.update(told["objects"])
    assert driver.files and workers.files, "the batch was not watched on the driver and in the workers"
    return driver, workers


def profile_batches() -> dict[str, tuple[Profile, Profile]]:
    """The profiles of a batch of a plain query, and of one that adapts to a budget."""
    here = (str(SRC), str(Path(__file__).parent), os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, here))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    import weir

    settings = {"ui.enabled": "false", "ui.showConsoleProgress": "false", "log.level": "ERROR"}
    settings |= {"driver.host": "127.0.0.1", "sql.shuffle.partitions": "2", "sql.session.timeZone": "UTC"}
    builder = SparkSession.builder.master("local[2]").appName("weir figures")
    spark = builder.config(map={f"spark.{key}": value for key, value in settings.items()}).getOrCreate()
    # A limit of CPU would let the speed of this machine decide what runs.
    budgets = {"folded batch": None, "folded batch that adapts": weir.Budget(memory="1g")}
    profiles = {label: profile_query(spark, budget) for label, budget in budgets.items()}
    spark.stop()
    return profiles


def write_stream(folder: Path) -> str:
    """Write one parquet file of a hundred rows for each second, oldest first; return the folder."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    rows = np.arange(100)
    for second in range(START, START + BATCHES):
        times = pa.array(second * 1_000_000 + rows * 10_000).cast(pa.timestamp("us", tz="UTC"))
        path = folder / f"{second}.parquet"
        pq.write_table(pa.table({"ts": times, "k": rows % 50, "x": rows / 100}), path)
        os.utime(path, (second, second))  # Spark reads the oldest file first
    return str(folder)
