"""Cost model of PSP: the latency of a ring and its best length (Wang and Rundensteiner 2009, section 5).

Equation 1 as printed multiplies a selectivity into the last probing step too, so that it counts the results
of each step instead of its comparisons. Equation 2 does not follow from that: the transmission term would be
1 / selectivity times larger. It follows, up to the one insert and purge of each tuple, if the first step
compares λ W pairs and each further step that many for every match so far, which is what is computed here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import accumulate
from math import floor, sqrt
from operator import mul

from weir.errors import QueryError
from weir.partition.placement import check_nodes


@dataclass(frozen=True, slots=True)
class RingCosts:
    """Seconds that each kind of work takes (Wang and Rundensteiner 2009, table 1).

    `join` compares a pair (T_j), `send` receives and sends on one tuple (T_s), `hop` is the latency of a link
    (T_n).
    """

    join: float
    send: float
    hop: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value >= 0:
                raise QueryError(f"'{field.name}' of a machine must not be below zero; got {value}")


@dataclass(frozen=True, slots=True)
class ProbingSteps:
    """The probing steps of one input tuple: rows in each partner's window (λ W), and selectivities.

    >>> steps = ProbingSteps((500.0, 500.0), (0.1, 0.1))
    >>> steps.comparisons, steps.travelling
    (25500.0, 51.0)
    """

    rows: tuple[float, ...]
    selectivities: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.rows or len(self.rows) != len(self.selectivities):
            raise QueryError(
                "a join needs at least two streams, and one selectivity for each partner; "
                f"got {len(self.rows)} partners and {len(self.selectivities)} selectivities"
            )

    @property
    def streams(self) -> int:
        """M: the partners and the stream of the tuple itself."""
        return len(self.rows) + 1

    @property
    def probing(self) -> tuple[float, ...]:
        """How many tuples probe at each step: the input tuple, then the matches so far."""
        matches = (rows * share for rows, share in zip(self.rows, self.selectivities, strict=True))
        return tuple(accumulate(matches, mul, initial=1.0))[:-1]

    @property
    def comparisons(self) -> float:
        """Pairs compared for one input tuple."""
        return sum(probing * rows for probing, rows in zip(self.probing, self.rows, strict=True))

    @property
    def travelling(self) -> float:
        """Tuples that go around the ring for one input tuple, itself included."""
        return sum(self.probing)


def latency(steps: ProbingSteps, costs: RingCosts, nodes: int) -> float:
    """Seconds from an input tuple to its results, with evenly loaded nodes and empty queues (equation 5)."""
    at_node = costs.join * steps.comparisons / check_nodes(nodes) + costs.send * steps.travelling
    return (nodes - 1) / 2 * costs.hop + max(at_node, steps.streams * nodes * costs.hop)


@dataclass(frozen=True, slots=True)
class RingLength:
    """How long a ring should be: the bounds N_1 and N_2 of section 5.2, and the best whole number."""

    by_rounds: float
    by_spread: float
    nodes: int


def best_length(steps: ProbingSteps, costs: RingCosts) -> RingLength:
    """Return the length of the ring with the least latency by equation 5."""
    work = costs.join * steps.comparisons
    if not costs.hop:
        raise QueryError("without a latency per hop no ring is too long; give 'hop' above zero")
    sent = costs.send * steps.travelling
    rounds = steps.streams * costs.hop
    by_rounds = (sent + sqrt(sent**2 + 4 * rounds * work)) / (2 * rounds)
    by_spread = (1 + sqrt(1 + 8 * work / costs.hop)) / 2
    shorter = max(1, floor(min(by_rounds, by_spread)))
    nodes = min((shorter, shorter + 1), key=lambda length: latency(steps, costs, length))
    return RingLength(by_rounds, by_spread, nodes)
