"""How does it run on Spark?"""

from weir.spark.batch_events import PHASES, listen
from weir.spark.build_join import RunOptions, build_join, build_sql_join
from weir.spark.join import SparkJoin
from weir.spark.query import SparkQuery

__all__ = ["PHASES", "SparkJoin", "SparkQuery", "Strategy", "build_join", "build_sql_join", "listen"]
