"""What work costs on the machines of a ring."""

from __future__ import annotations

from dataclasses import dataclass, fields

from weir.errors import QueryError


@dataclass(frozen=True, slots=True)
class Hardware:
    """Seconds that each kind of work takes (Wang and Rundensteiner 2009, table 1), and what a link carries.

    `join` compares a pair (T_j), `send` receives and sends on one tuple (T_s), `hop` is the latency of a link
    (T_n), `insert` and `purge` are T_i and T_p. A link carries `bandwidth` bytes a second, a tuple has
    `tuple_bytes`.
    """

    join: float
    send: float
    hop: float
    insert: float = 0.0
    purge: float = 0.0
    bandwidth: float = float("inf")
    tuple_bytes: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value >= 0:
                raise QueryError(f"'{field.name}' of a machine must not be below zero; got {value}")
        if not self.bandwidth > 0:
            raise QueryError(f"a link needs a bandwidth above zero; got {self.bandwidth} bytes a second")

    @property
    def wire(self) -> float:
        """Seconds for which a tuple keeps a link busy."""
        return self.tuple_bytes / self.bandwidth


def check_nodes(nodes: int) -> int:
    """The number of nodes, if there can be so many."""
    if nodes < 1:
        raise QueryError(f"a join needs at least one node to run on; got {nodes}")
    return nodes
