"""How a query runs on Spark, beyond what it asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weir.adapt.settings import Adapt
from weir.errors import QueryError
from weir.shed.allowance import Allowance


@dataclass(frozen=True, slots=True)
class Settings:
    """`idle`: a stream this far behind (µs) stops holding the watermark; None: it always holds it.

    `on_null_time`: rows without an event time are dropped and counted, or fail the batch.
    `batches_to_retain`: of how many batches the manifests and their slices are kept.
    `allowance`: the share of the rows reaching each hop that may probe there; None: all. `reason`: why so.
    `adapt`: when what is decided changes while the query runs; None: never.
    """

    idle: int | None = None
    on_null_time: Literal["drop", "fail"] = "drop"
    batches_to_retain: int = 2
    allowance: Allowance | None = None
    reason: str = "as asked"
    adapt: Adapt | None = None

    def __post_init__(self) -> None:
        if self.on_null_time not in ("drop", "fail"):
            raise QueryError(f"onNullTime is 'drop' or 'fail'; got '{self.on_null_time}'")
        if self.batches_to_retain < 2:
            raise QueryError(
                "spark.sql.streaming.minBatchesToRetain must be at least 2 for weir; "
                f"it is {self.batches_to_retain}"
            )
