"""Thin a plan: one share of the rows that reach the root's first hops may probe there, chosen by hash.

Nothing below the root is shed, so every state stays whole. Each result is found by one row that enters the
root, so recall is the share, and CPU falls in a line down to what storing rows and the joins below take.
"""

from __future__ import annotations

from dataclasses import replace

from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop


def thin(plan: Join, share: float, sample: float = 0.0) -> Allowance:
    """The allowance that lets a share of the rows and partials that reach the root probe there.

    >>> from weir.plan.tree import join
    >>> {str(hop): share for hop, share in thin(join(join("a", "b"), "c"), 0.4).probes.items()}
    {'(a b) ⋉ c in ((a b) c)': 0.4, 'c ⋉ (a b) in ((a b) c)': 0.4}
    """
    return Allowance(dict.fromkeys(first_hops(plan), share), choose="hash", sample=sample)


def trim(allowance: Allowance | None, plan: Join, share: float) -> Allowance:
    """An allowance of which only a share of the driver rows that it lets probe the root still do so.

    >>> from weir.plan.tree import join
    >>> plan = join("a", "b")
    >>> list(trim(thin(plan, 0.4), plan, 0.5).probes.values())
    [0.2, 0.2]
    """
    given = allowance or Allowance()
    shares = {hop: share * given.share(hop) for hop in first_hops(plan)}
    return replace(given, probes={**given.probes, **shares}, choose="hash")


def first_hops(plan: Join) -> tuple[Hop, ...]:
    """The first hop of each path of the root."""
    return tuple(
        Hop(str(driver), str(plan), str(plan.inputs[order[0]]))
        for driver, order in zip(plan.inputs, plan.orders, strict=True)
    )
