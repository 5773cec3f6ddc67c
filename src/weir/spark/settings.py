"""How a query runs on Spark: what its options say, and what the session adds."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from weir.adapt.settings import Adapt
from weir.adapt.shedding import AS_REQUESTED
from weir.errors import QueryError
from weir.options import JoinOptions, OnNullTime
from weir.shed.allowance import Allowance
from weir.units import parse_interval

_BATCHES_TO_RETAIN = "spark.sql.streaming.minBatchesToRetain"


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a query as its batches need them.

    `idle`: a stream this far behind (µs) no longer holds the watermark back; None: it always does.
    `allowance`: the share of the rows reaching each hop that may probe there; None: all. `reason`: why so.
    `batches_to_retain`: of how many batches the manifests and their slices are kept.
    """

    idle: int | None = None
    on_null_time: OnNullTime = "drop"
    batches_to_retain: int = 2
    allowance: Allowance | None = None
    reason: str = AS_REQUESTED
    adapt: Adapt | None = None

    def __post_init__(self) -> None:
        if self.batches_to_retain < 2:
            raise QueryError(
                f"{_BATCHES_TO_RETAIN} must be at least 2 for weir; it is {self.batches_to_retain}"
            )


def read_settings(options: JoinOptions, spark: SparkSession) -> Settings:
    """The settings of a join in a session; weir keeps at least two batches whatever the session says."""
    return Settings(
        idle=None if options.idle is None else parse_interval(options.idle),
        on_null_time=options.on_null_time,
        batches_to_retain=max(2, int(spark.conf.get(_BATCHES_TO_RETAIN, "100") or 100)),
        allowance=options.allowance,
        adapt=options.adaptation,
    )
