"""The allowance: how much of the work of each hop may be done, and which rows reach the join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from weir.errors import QueryError, refuse_unknown_keys, unknown_name
from weir.plan.tree import Join, hops
from weir.shed.ages import Ages
from weir.stats.hop import Hop

Choose = Literal["newest", "hash"]


@refuse_unknown_keys
@dataclass(frozen=True, slots=True)
class Allowance:
    """Bounds on the work of each hop and on the rows of each stream; what is not named is not bounded.

    `probes` is the share of the rows reaching a hop that may probe there: the `newest` by event time, or
    those with the lowest `hash` of their content; at later hops of an mjoin always by hash. `ages` are the
    ages of partners that a probe reads. `drop` is the share of a stream's rows that never reach the join.
    In addition, a share of the rows that enter each join, the `sample`, probes at every hop and reads all
    ages; its results tell how much is missed.

    >>> Allowance({Hop("a", "(a b)", "b"): 0.25}).share(Hop("a", "(a b)", "b"))
    0.25
    """

    probes: Mapping[Hop, float] = field(default_factory=dict)
    choose: Choose = "newest"
    sample: float = 0.0
    ages: Mapping[Hop, Ages] = field(default_factory=dict)
    drop: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for hop, ages in self.ages.items():
            if not isinstance(ages, Ages):
                raise QueryError(
                    f"the ages of {hop} are written weir.Ages(2_000_000, {{0, 3}}); got {ages!r}"
                )
        rules = {f"the allowance of {hop} must be a share": share for hop, share in self.probes.items()}
        rules |= {f"the share of stream '{name}' to drop must be": share for name, share in self.drop.items()}
        for rule, share in (*rules.items(), ("the sample of an allowance must be a share", self.sample)):
            if not isinstance(share, int | float) or not 0 <= share <= 1:
                raise QueryError(f"{rule} from 0 to 1; got {share}")
        if self.choose not in get_args(Choose):
            raise QueryError(f"an allowance chooses the 'newest' rows or by 'hash'; got {self.choose!r}")

    def check(self, plan: Join) -> None:
        """Refuse a hop or a stream that the plan does not have."""
        known = dict.fromkeys(hops(plan))
        for hop in (*self.probes, *self.ages):
            if hop not in known:
                raise QueryError(
                    f"the allowance names the hop {hop}, which the plan {plan} does not have; it has "
                    + ", ".join(f"'{existing}'" for existing in known)
                )
        for stream in self.drop:
            if stream not in plan.streams:
                raise unknown_name("stream", stream, plan.streams, where=" in an allowance's drop")

    def restrict_to(self, plan: Join) -> Allowance:
        """The allowance without the hops that another plan does not have."""
        known = frozenset(hops(plan))
        return replace(
            self,
            probes={hop: share for hop, share in self.probes.items() if hop in known},
            ages={hop: ages for hop, ages in self.ages.items() if hop in known},
        )

    @property
    def sheds(self) -> bool:
        """True if it may skip anything; a sample alone does not."""
        shares = (*self.probes.values(), *(1 - share for share in self.drop.values()))
        return bool(self.ages) or any(share < 1 for share in shares)

    def share(self, hop: Hop) -> float:
        """The share of the rows reaching a hop that may probe there."""
        return self.probes.get(hop, 1.0)
