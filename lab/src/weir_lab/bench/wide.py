"""`weir-lab bench wide`: memory that 50 million results of one batch and rows of a megabyte take."""

from __future__ import annotations

from subprocess import CalledProcessError

from weir_lab.bench.figure import Figure, summarise, tell
from weir_lab.bench.one_thread import run_module
from weir_lab.bench.session import check_java
from weir_lab.bench.wide_shapes import SHAPES

WAYS = ("chunks", "count", "parquet", "foreachBatch")


def run(quick: bool = False) -> list[Figure]:
    """Every shape in every way, each in a process of its own, so that none starts from another's memory."""
    check_java()
    return [figure for shape in SHAPES for way in WAYS for figure in _measure(shape, way, quick)]


def _measure(shape: str, way: str, quick: bool) -> list[Figure]:
    """The figures of a shape; if its process fails, one that says so."""
    try:
        return run_module("weir_lab.bench.wide_job", shape, way, *(["--quick"] if quick else []))
    except CalledProcessError as error:
        name = f"{shape}, {way}: results / exact number"
        failed = summarise(name, [0.0], 1.0, "at least", f"ended with exit code {error.returncode}")
        return [*tell([failed])]
