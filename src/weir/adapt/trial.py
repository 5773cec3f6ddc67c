"""Trials: whatever is cleverer than thinning must show that it finds more results for the same CPU.

The decision in force is thinned to its limit. A challenger, another tree or another way of shedding, runs for
one window; it stays if its recall at the CPU allowed beats the measured recall of what it replaces by more
than noise, else the query goes back, and the same challenger is barred for ten windows.

    thinned ──▶ challenger runs for a window ──▶ better: it stays in force, thinned if it takes too much
                                             └─▶ not:    back, and barred
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.thin import first_hops

# A challenger must find this many times the results of what it replaces.
_WORTH_KEEPING = 1.03
# Two standard errors of the mean recall of some batches.
_NOISE_ERRORS = 2.0
# A trial ends early if its first batch, or all so far, find less than this share of what was found before.
_HOPELESS_SHARES = (0.5, 0.75)


@dataclass(frozen=True, slots=True)
class Base:
    """A plan and the allowance that thinning starts from; None: nothing else is shed."""

    plan: Join
    allowance: Allowance | None = None
    strategy: str = ""

    @property
    def key(self) -> str:
        """The name under which its work is remembered."""
        orders = "".join(str(node.orders) for node in self.plan.inner())
        return f"{self.plan} {orders} {self.strategy}".rstrip()

    def name_change(self, other: Base) -> str:
        """Say in which way another one differs: that is what a lost trial bars."""
        return "tree" if self.has_other_tree(other) else other.strategy or "orders"

    def has_other_tree(self, other: Base) -> bool:
        """True if another one's plan differs in more than its probing orders."""
        return str(other.plan) != str(self.plan)

    @property
    def sheds(self) -> bool:
        """True if it sheds by more than thinning."""
        return self.allowance is not None and self.allowance.sheds

    def mean_share(self, rates: Mapping[str, float]) -> float:
        """The share of the driver rows at the root that it lets probe, before it is thinned."""
        if self.allowance is None:
            return 1.0
        weights = {hop: rates.get(hop.driver, 1.0) for hop in first_hops(self.plan)}
        total = sum(weights.values())
        mean = sum(self.allowance.share(hop) * weight for hop, weight in weights.items())
        return mean / total if total and mean else 1.0

    def stored_share(self, rates: Mapping[str, float]) -> float:
        """The share of all rows that it does not drop."""
        drops, total = {} if self.allowance is None else self.allowance.drop, sum(rates.values())
        dropped = sum(drops.get(name, 0.0) * rate for name, rate in rates.items())
        return 1 - dropped / total if 0 < dropped < total else 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Batches under one decision: how many, their event seconds, and sums of their recall and CPU.

    `efficiency` sums recall at the CPU allowed: recall over the seconds taken, times those allowed.
    """

    batches: int = 0
    span: float = 0.0
    efficiency: float = 0.0
    squares: float = 0.0

    def after(self, span: float, recall: float, ratio: float) -> Measured:
        """Add a batch, with its CPU seconds over what it was allowed."""
        efficiency = min(1.0, recall / max(ratio, 1.0))
        return Measured(
            self.batches + 1,
            self.span + span,
            self.efficiency + efficiency,
            self.squares + efficiency * efficiency,
        )

    @staticmethod
    def of(batches: Iterable[tuple[float, float, float]]) -> Measured:
        """Measure some batches: event seconds, recall, CPU seconds over what was allowed."""
        measured = Measured()
        for batch in batches:
            measured = measured.after(*batch)
        return measured

    @property
    def mean(self) -> float:
        """The mean recall at the CPU allowed."""
        return self.efficiency / self.batches if self.batches else 0.0

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        if self.batches < 2:
            return 0.0
        variance = max(0.0, self.squares / self.batches - self.mean**2)
        return float((variance / (self.batches - 1)) ** 0.5)


@dataclass(frozen=True, slots=True)
class Trial:
    """A challenger at work, and what it must beat.

    `exact_share` was that of the statistics when the trial began.
    """

    challenger: Base
    before: Base
    standing: Measured
    measured: Measured = Measured()
    exact_share: float = 0.0

    def after(self, span: float, recall: float | None, ratio: float) -> Trial:
        """Add a batch of the challenger; one whose recall is not known counts as if nothing was found."""
        return replace(self, measured=self.measured.after(span, recall or 0.0, ratio))

    def is_won(self, window: float) -> bool | None:
        """True if the challenger is better, False if not; None as long as it has not run for a window."""
        batches = min(self.measured.batches, len(_HOPELESS_SHARES))
        if batches and self.measured.mean < _HOPELESS_SHARES[batches - 1] * self.standing.mean:
            return False
        if self.measured.span < window:
            return None
        if self.before.sheds and not self.challenger.sheds:
            return self.measured.mean > self.standing.mean  # the burden of proof is on what is cleverer
        noise = _NOISE_ERRORS * (self.standing.error**2 + self.measured.error**2) ** 0.5
        wanted = max(_WORTH_KEEPING * self.standing.mean, self.standing.mean + noise)
        return bool(self.measured.mean > wanted)
