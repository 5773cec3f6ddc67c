"""What do we see?"""

from weir.stats.batch import BatchStats, Hop, HopStats, StateSize
from weir.stats.join_graph import JoinGraph, Streams
from weir.stats.lag_histogram import LagHistogram, LagHistograms
from weir.stats.unit_costs import UnitCosts

__all__ = [
    "BatchStats",
    "Hop",
    "HopStats",
    "JoinGraph",
    "LagHistogram",
    "LagHistograms",
    "StateSize",
    "Streams",
    "UnitCosts",
]
