"""When batches run: Spark's triggers, checked as Spark checks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weir.errors import QueryError, unknown_name
from weir.query.options import show_given

F = TypeVar("F", bound=Callable[..., Any])

_EXAMPLE = "trigger(processingTime='5 seconds'), trigger(availableNow=True) or trigger(once=True)"


def name_unknown_keywords(method: F) -> F:
    """Make a method with keywords only raise a QueryError for what it does not take, with the right name."""
    known = list(signature(method).parameters)[1:]

    @wraps(method)
    def checked(self: Any, *given: Any, **named: Any) -> Any:
        if given:
            raise QueryError(f"{method.__name__} takes keywords: {_EXAMPLE}; got {show_given(given[0])}")
        for name in named:
            if name not in known:
                raise unknown_name("keyword", name, known, where=f" of {method.__name__}")
        return method(self, **named)

    return checked  # type: ignore[return-value] # it accepts what the original accepts


def read_trigger(spark: SparkSession, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the one trigger that is not None, or refuse it."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) != 1:
        named = f"; got {' and '.join(chosen)}" if chosen else ""
        raise QueryError(f"trigger takes exactly one keyword: {_EXAMPLE}{named}")
    ((name, value),) = chosen.items()
    if name in ("continuous", "realTime"):
        raise QueryError(
            f"a join runs in micro-batches, not {name}: use processingTime, availableNow or once"
        )
    if name in ("once", "availableNow"):
        if value is not True:
            raise QueryError(f"trigger({name}=...) takes only True; got {show_given(value)}")
    elif not isinstance(value, str) or not value.strip():
        raise QueryError(f"processingTime is an interval, like '5 seconds'; got {show_given(value)}")
    else:
        trigger_seconds(spark, chosen)
    return chosen


def trigger_seconds(spark: SparkSession, trigger: Mapping[str, Any]) -> float | None:
    """The seconds between two triggers; None if each batch starts when the last one ends."""
    if "processingTime" not in trigger:
        return None
    jvm: Any = spark._jvm
    given = trigger["processingTime"]
    try:
        milliseconds = jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(given.strip()).intervalMs()
    except (PySparkException, Py4JJavaError):
        raise QueryError(
            f"processingTime is an interval, like '5 seconds' or '1 minute'; got {given!r}"
        ) from None
    return float(milliseconds) / 1000 or None
