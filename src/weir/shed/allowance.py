"""How much each hop may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from weir.errors import QueryError
from weir.plan import Join, hops
from weir.stats import Hop

Choose = Literal["newest", "hash"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """The share of the rows reaching each hop that may probe there; a hop that is not named probes with all.

    Which rows: the `newest` by event time, or those with the lowest `hash` of their content. On top of these
    a share of the rows that enter each join, the `sample`, passes every hop there; what it finds tells how
    much is missed.

    >>> Allowance({Hop("a", "(a b)", "b"): 0.25}).share(Hop("a", "(a b)", "b"))
    0.25
    """

    probes: Mapping[Hop, float] = field(default_factory=dict)
    choose: Choose = "newest"
    sample: float = 0.0

    def __post_init__(self) -> None:
        for hop, share in self.probes.items():
            if not 0 <= share <= 1:
                raise QueryError(f"the allowance of {hop} must be a share from 0 to 1; got {share}")
        if not 0 <= self.sample <= 1:
            raise QueryError(f"the sample of an allowance must be a share from 0 to 1; got {self.sample}")
        if self.choose not in get_args(Choose):
            raise QueryError(f"an allowance chooses the 'newest' rows or by 'hash'; got {self.choose!r}")

    def check(self, plan: Join) -> None:
        """Refuse a hop that the plan does not have."""
        known = dict.fromkeys(hops(plan))
        for hop in self.probes:
            if hop not in known:
                raise QueryError(
                    f"the allowance names the hop {hop}, which the plan {plan} does not have; it has "
                    + ", ".join(f"'{one}'" for one in known)
                )

    def share(self, hop: Hop) -> float:
        """What one hop may do."""
        return self.probes.get(hop, 1.0)
