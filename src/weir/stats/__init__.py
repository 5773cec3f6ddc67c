"""What do we see?"""

from weir.stats.batch import BatchStats, Hop, HopStats, StateSize

__all__ = ["BatchStats", "Hop", "HopStats", "StateSize"]
