"""The machines of the simulated ring: what work costs on them, and what their links carry."""

from __future__ import annotations

from dataclasses import dataclass

from weir.errors import QueryError
from weir.partition.ring_cost import RingCosts


@dataclass(frozen=True, slots=True)
class Hardware(RingCosts):
    """All unit costs of Wang and Rundensteiner 2009, table 1, and the bandwidth of links.

    Beside those of the cost model, `insert` and `purge` are T_i and T_p. A link carries `bandwidth` bytes a
    second, a tuple has `tuple_bytes`.
    """

    insert: float = 0.0
    purge: float = 0.0
    bandwidth: float = float("inf")
    tuple_bytes: float = 0.0

    def __post_init__(self) -> None:
        RingCosts.__post_init__(self)
        if not self.bandwidth > 0:
            raise QueryError(f"a link needs a bandwidth above zero; got {self.bandwidth} bytes a second")

    @property
    def wire(self) -> float:
        """Seconds for which a tuple keeps a link busy."""
        return self.tuple_bytes / self.bandwidth
