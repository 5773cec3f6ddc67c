"""What a job script needs of Spark: a session, streams from sources, and why a query ended."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from weir.errors import QueryError
from weir.spark.query import SparkQuery

Session: TypeAlias = SparkSession

_BATCH = re.compile(r"weir: batch (\d+) failed")  # the note that a failing batch leaves
_LEVEL = "spark.log.level"
_DEFAULTS: Mapping[str, str] = {
    "spark.master": "local[*]",
    "spark.app.name": "weir",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    _LEVEL: "OFF",
}


@contextmanager
def session(settings: Mapping[str, str]) -> Iterator[Session]:
    """The session there is, or one of our own that ends with the block; quiet unless a log level is set."""
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    made = _made({**_DEFAULTS, **settings}, quiet=_LEVEL not in settings)
    try:
        yield made
    finally:
        made.stop()


def _made(settings: Mapping[str, str], quiet: bool) -> Session:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if settings["spark.master"].startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: Any = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with tempfile.TemporaryFile() as said:
        try:
            with _errors_to(said.fileno() if quiet else None):
                found: Session = builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            said.seek(0)
            lines = [*said.read().decode(errors="replace").splitlines(), *str(error).splitlines()]
            reason = next((line for line in lines if "rror" in line or "not found" in line), lines[-1])
            reason = reason.strip().rstrip(".")
            raise QueryError(
                f"Spark does not start: {reason}; it needs Java 17 or later on the PATH or in JAVA_HOME"
            ) from None
    return found


@contextmanager
def _errors_to(target: int | None) -> Iterator[None]:
    """What a process started here says on stderr goes elsewhere: Java greets before it can be told not to."""
    if target is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(target, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def open_stream(spark: Session, source: str, columns: str | None, options: Mapping[str, str]) -> DataFrame:
    """The streaming DataFrame of a source."""
    reader = spark.readStream.format(source).options(**options)
    try:
        return (reader if columns is None else reader.schema(columns)).load()
    except (PySparkException, Py4JError) as error:
        raise QueryError(_first_line(error)) from None


def empty_frame(spark: Session, columns: str) -> DataFrame:
    """No rows of these columns: enough to plan with."""
    try:
        return spark.createDataFrame([], columns)
    except (PySparkException, Py4JError) as error:
        raise QueryError(_first_line(error)) from None


def has_ended(query: SparkQuery, seconds: float) -> bool:
    """Wait this long for the end; a query that failed is an error that says why."""
    try:
        return bool(query.awaitTermination(seconds))
    except PySparkException as error:
        raise QueryError(f"the query failed: {_cause(error)}") from error


def stop(query: SparkQuery) -> None:
    """Stop; what the interrupted batch says about it is of no interest, as it will be repeated."""
    try:
        query.stop()
    except (PySparkException, Py4JError):
        return


def _first_line(error: Exception) -> str:
    said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
    return str(said).strip().splitlines()[0]


def _cause(error: Exception) -> str:
    """The last exception of Python's in a long message, or else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kinds = ("Error: ", "Exception: ")
    python = [line for line in lines if any(kind in line.split(" ")[0] + " " for kind in kinds)]
    batch = next((found[1] for line in lines if (found := _BATCH.match(line))), None)
    where = "" if batch is None else f"batch {batch}: "
    return where + (python[-1] if python else lines[0])
