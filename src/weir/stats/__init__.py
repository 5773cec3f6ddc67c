"""What do we see?"""

from weir.stats.batch import BatchStats, Hop, HopStats, StateSize
from weir.stats.costs import Costs
from weir.stats.graph import JoinGraph, Streams

__all__ = ["BatchStats", "Costs", "Hop", "HopStats", "JoinGraph", "StateSize", "Streams"]
