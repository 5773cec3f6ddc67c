"""How does it run on Spark?"""

from weir.spark.ask import Way, ask, ask_sql
from weir.spark.join import SparkJoin
from weir.spark.phases import PHASES, listen
from weir.spark.query import SparkQuery

__all__ = ["PHASES", "SparkJoin", "SparkQuery", "Strategy", "ask", "ask_sql", "listen"]
