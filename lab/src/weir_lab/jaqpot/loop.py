"""The closed loop of Mukherji et al. 2011, section 4.4: a policy's budget follows from what it really spent.

Shares of arriving rows bound probes only as well as arrivals are predicted, and in correlated data they
are predicted badly. So each analysis scales the budget by the probes allowed over the probes made, and every
policy spends the same over a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# Of two ratios, the mean; and the bounds of one step and of the whole.
_GAIN, _STEP, _MOST = 0.5, 4.0, 4.0


@dataclass(frozen=True, slots=True)
class Loop:
    """Probes allowed and made so far, and by how much the next budget is scaled.

    >>> Loop().after(allowed=100, made=400).scale
    0.25
    """

    allowed: float = 0.0
    made: float = 0.0
    scale: float = 1.0

    def after(self, allowed: float, made: float) -> Loop:
        """The loop once so many more probes were allowed and made.

        A step is the geometric mean of what the last interval asks for and what all of them do, so that what
        was overspent is saved later.
        """
        total = replace(self, allowed=self.allowed + allowed, made=self.made + made)
        step = (_ratio(allowed, made) * _ratio(total.allowed, total.made)) ** _GAIN
        return replace(total, scale=_bounded(self.scale * step, _MOST))

    @property
    def spent(self) -> float:
        """Probes made for each one allowed."""
        return self.made / self.allowed if self.allowed else 0.0


def _ratio(allowed: float, made: float) -> float:
    return _bounded(allowed / made, _STEP) if made else _STEP


def _bounded(factor: float, most: float) -> float:
    return min(most, max(1 / most, factor))
