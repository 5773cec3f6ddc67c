"""A batch that failed, as a user sees it: one sentence, and an error of ours if the cause is ours.

The batch runs in the driver's Python, called by Spark. What it raises there would come back to
`awaitTermination` inside a page of Java and Python, so the original is kept, and Spark gets a sentence.
Set WEIR_DEBUG=1 in the environment to see the whole chain.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.errors import StreamingQueryException

from weir.errors import QueryError
from weir.spark.disk_space import disk_full, is_disk_full
from weir.spark.errors import TakenOverError, damaged_state
from weir.spark.java_errors import reason_of

_OWN = re.compile(r"^\s*(weir(?:\.\w+)+): (.+)$", re.MULTILINE)
# What Spark says where another driver has written an entry of its logs first.
_TWO_DRIVERS = re.compile(
    r"CONCURRENT_STREAM_LOG_UPDATE|Concurrent update to the log|queries are concurrently using"
)
# What it says where there are files of a log before its first batch, whoever has left them there.
_LOG_NOT_EMPTY = re.compile(
    r"STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY\] The checkpoint location (\S+) should"
)
# What Hadoop says of a file that does not have its checksums.
_WRONG_CHECKSUM = re.compile(r"Checksum error: (\S+) at ")
_PYTHON = re.compile(r"^\s*((?:\w+\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE)


def is_debugging() -> bool:
    """True if errors should show all that is known of their causes."""
    return os.environ.get("WEIR_DEBUG", "") not in ("", "0")


class BatchFailedError(Exception):
    """What Spark gets in place of the error that ended a batch: its sentence."""


class BatchInterruptedError(Exception):
    """What Spark gets when the query was stopped in the middle of a batch.

    By this text, that of an interrupted call, Spark tells a Python function that was stopped from one that
    failed, and logs no error.
    """

    def __init__(self) -> None:
        super().__init__(
            "py4j.protocol.Py4JJavaError: An error occurred while calling foreachBatch: "
            "java.lang.InterruptedException: the query was stopped; the next start repeats the batch"
        )


def find_own_error(error: BaseException) -> QueryError | None:
    """Return the error of ours that caused another, on the driver or in a worker; None if there is none.

    A full disk that Spark came upon is one, too, and so is a second driver.
    """
    for cause in _causes(error):
        if isinstance(cause, QueryError):
            return cause
    known = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _kinds(QueryError)}
    for name, message in reversed(_OWN.findall(str(error))):
        if name in known:
            return known[name](message)
    if is_disk_full(error):
        return disk_full(
            "what Spark stores", "on the disks of the checkpoint, the results and spark.local.dir"
        )
    if _TWO_DRIVERS.search(str(error)):
        return TakenOverError(
            "another driver has run a query from the same checkpoint at the same time, and Spark has found "
            "its entries in the logs; let one driver at a time run from a checkpoint, and start it again"
        )
    if left := _LOG_NOT_EMPTY.search(str(error)):
        return QueryError(
            f"{left[1]} has files already, though Spark begins the first batch: another driver runs from the "
            "same checkpoint, or one has ended while it wrote there; end the other driver or, if there is "
            "none, delete the files there whose names end with .tmp or .tmp.crc, and start again"
        )
    if wrong := _WRONG_CHECKSUM.search(str(error)):
        return damaged_state(f"{wrong[1]} does not have the checksums that Hadoop keeps beside it")
    return None


@dataclass(frozen=True)
class Failure:
    """What ended a batch."""

    error: BaseException
    batch: int

    def __str__(self) -> str:
        """Say in a sentence which batch failed, and why."""
        own, python = find_own_error(self.error), _PYTHON.findall(str(self.error))
        if isinstance(own, TakenOverError):
            return f"weir: {own}"
        last = python[-1] if python else f"{type(self.error).__name__}: {reason_of(self.error)}"
        return f"{self._where}: {own or last}; the next start repeats it"

    @property
    def _where(self) -> str:
        return f"weir: batch {self.batch} failed"

    def as_raised(self, reported: StreamingQueryException) -> Exception:
        """Return the error to raise in place of the one that Spark reports: of our class if it is ours."""
        own = find_own_error(self.error)
        if own is None:
            raised: Exception = StreamingQueryException(str(self))
            raised.__cause__ = self.error
            return raised
        raised = type(own)(*own.args)
        if not isinstance(own, TakenOverError):
            raised.add_note(f"{self._where}; the next start repeats it")
        raised.__cause__ = reported if is_debugging() else None
        raised.__suppress_context__ = True
        return raised


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        yield current
        current = current.__cause__ or current.__context__


def _kinds(kind: type[QueryError]) -> Iterator[type[QueryError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


class _Repeated(logging.Filter):
    """Drops py4j's log of errors that the query tells by itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return is_debugging() or not isinstance(error, BatchFailedError | BatchInterruptedError)


def quieten_py4j() -> None:
    """Keep py4j from logging, with a traceback, what the query raises anyway."""
    logger = logging.getLogger("py4j.clientserver")
    if not any(isinstance(each, _Repeated) for each in logger.filters):
        logger.addFilter(_Repeated())
