"""Run joins over Spark DataFrames."""

from typing import TYPE_CHECKING

from weir.lazy import lazy_names

if TYPE_CHECKING:
    from weir.runtime.batch_events import PHASES, listen
    from weir.spark.join import SparkJoin
    from weir.spark.query import SparkQuery

__all__ = ["PHASES", "SparkJoin", "SparkQuery", "listen"]

__getattr__ = lazy_names(
    __name__,
    dict.fromkeys(("PHASES", "listen"), "weir.runtime.batch_events")
    | {"SparkJoin": "weir.spark.join", "SparkQuery": "weir.spark.query"},
)
