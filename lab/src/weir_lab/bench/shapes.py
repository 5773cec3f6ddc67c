"""`weir-lab bench shapes`: shapes of data in the local engine and on Spark, beside DuckDB.

DuckDB gets one thread beside the local engine, and Spark's number of cores beside Spark. It reads the same
Arrow tables as weir, and all deliver the same columns.
"""

from __future__ import annotations

from pathlib import Path

from weir_lab.bench.figure import Figure
from weir_lab.bench.one_thread import run_module
from weir_lab.bench.session import check_java
from weir_lab.bench.shape_tables import Shape, make_shapes, read_shapes

BATCHES = 20
# No turn of a shape begins after so many seconds: DuckDB takes long for some of them.
PATIENCE = 30.0
_QUICK_PART = 5


def rows_per_stream(quick: bool) -> int:
    """The rows of each stream of a synthetic shape."""
    return 4_000 if quick else 20_000


def list_shapes(data: Path | None, quick: bool) -> list[Shape]:
    """Every shape, with those of the real files in a folder; when quick, a fifth of each."""
    real = [] if data is None else read_shapes(data)
    if quick:
        real = [shape.beginning(_QUICK_PART) for shape in real]
    return [*make_shapes(rows_per_stream(quick)), *real]


def run(data: Path | None = None, quick: bool = False) -> list[Figure]:
    """Every figure: those of the local engine from a process of its own, then those of Spark."""
    from weir_lab.bench.spark_shapes import measure

    check_java()
    if data is not None:
        read_shapes(data)  # refuses a folder without data before anything runs
    arguments = [*(["--quick"] if quick else []), *([] if data is None else [str(data)])]
    local = run_module("weir_lab.bench.local_shapes", *arguments)
    return [*local, *measure(data, quick)]
