"""What job scripts need of Spark: open a session and streams, and tell why a query ended."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from weir.errors import QueryError
from weir.spark.java_errors import reason_of
from weir.spark.query import SparkQuery
from weir.spark.redaction import hide_secrets
from weir.spark.sink_checks import check_source

Session: TypeAlias = SparkSession

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
    """Yield the active session, or a new one that stops with the block; quiet unless a log level is set."""
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    started = _start_session({**_DEFAULTS, **settings}, quiet=_LEVEL not in settings)
    try:
        yield started
    finally:
        started.stop()


def _start_session(settings: Mapping[str, str], quiet: bool) -> Session:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if settings["spark.master"].startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: Any = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with tempfile.TemporaryFile() as output:
        try:
            with _redirect_stderr(output.fileno()) if quiet else nullcontext():
                started: Session = builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            output.seek(0)
            lines = [*output.read().decode(errors="replace").splitlines(), *str(error).splitlines()]
            reason = next((line for line in lines if "rror" in line or "not found" in line), lines[-1])
            hint = "it needs Java 17 or later on the PATH or in JAVA_HOME"
            raise QueryError(f"Spark does not start: {reason.strip().rstrip('.')}; {hint}") from None
    return started


@contextmanager
def _redirect_stderr(target: int) -> Iterator[None]:
    """Redirect what a process started here writes to stderr: Java logs before it can be told not to."""
    sys.stderr.flush()
    original = os.dup(2)
    os.dup2(target, 2)
    try:
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)


def open_stream(
    spark: Session, source: str, columns: str | None, options: Mapping[str, str], schema_only: bool = False
) -> DataFrame:
    """Return the streaming DataFrame of a source; with `schema_only`, an empty one if columns are given."""
    check_source(spark, source)
    try:
        if schema_only and columns is not None:
            return _empty_stream(spark, columns)
        reader = spark.readStream.format(source).options(**options)
        return (reader if columns is None else reader.schema(columns)).load()
    except (PySparkException, Py4JError) as error:
        raise QueryError(hide_secrets(spark, options, reason_of(error))) from None


def _empty_stream(spark: Session, columns: str) -> DataFrame:
    """A stream with these columns that opens nothing."""
    fields = spark.createDataFrame([], columns).schema
    nulls = (F.lit(None).cast(field.dataType).alias(field.name) for field in fields)
    return spark.readStream.format("rate").load().where("false").select(*nulls)


def wait_for_end(query: SparkQuery, seconds: float) -> bool:
    """Wait for the end for so many seconds; raise an error that says why a query failed."""
    try:
        return bool(query.awaitTermination(seconds))
    except (PySparkException, QueryError) as error:
        where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        raise QueryError(f"the query failed: {reason_of(error)}{where}") from error


def stop(query: SparkQuery) -> None:
    """Stop, and ignore the error of the interrupted batch, which the next start repeats."""
    with suppress(PySparkException, Py4JError):
        query.stop()
