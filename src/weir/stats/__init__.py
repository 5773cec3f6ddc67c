"""What do we see?"""

from weir.stats.batch import BatchStats, Hop, HopStats, StateSize
from weir.stats.costs import Costs
from weir.stats.graph import JoinGraph, Streams
from weir.stats.lags import Correlations, Lags

__all__ = [
    "BatchStats",
    "Correlations",
    "Costs",
    "Hop",
    "HopStats",
    "JoinGraph",
    "Lags",
    "StateSize",
    "Streams",
]
