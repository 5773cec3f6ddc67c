"""Probe sample: rows exempt from shedding, by which the results lost to shedding are estimated.

A partial is sampled if and only if the row that drives it is, and a hash of that row's content, the batch,
the node and the driver decides. So no mark travels with a partial, and a sampled row finds every match that
the states of its node hold.
"""

from __future__ import annotations

import numpy as np

from weir.kernel.keys import Bools
from weir.kernel.partial import Partial, Rows
from weir.kernel.row_hash import hash_rows, select_share
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop


class ProbeSample:
    """The sampled rows on the path of a hop during one batch."""

    def __init__(self, hop: Hop, batch: int, share: float) -> None:
        self._purpose = (batch, "sample", hop.node, hop.driver)
        self.share = share
        self._last: tuple[Rows, Bools] | None = None

    @staticmethod
    def of(allowance: Allowance | None, hop: Hop, batch: int) -> ProbeSample | None:
        """Return the sample that an allowance asks for; None if it asks for none."""
        if allowance is None or not allowance.sample:
            return None
        return ProbeSample(hop, batch, allowance.sample)

    def mark(self, partial: Partial) -> Bools:
        """Tell which rows of a partial are sampled."""
        driver = partial.groups[0]
        sampled = self._mark_driver(driver.rows)
        return sampled if driver.picks is None else sampled[driver.picks]

    def count(self, partial: Partial) -> int:
        """Count the sampled rows of a partial."""
        return int(np.count_nonzero(self.mark(partial)))

    def _mark_driver(self, rows: Rows) -> Bools:
        # All chunks made from one driver slice come one after the other.
        if self._last is None or self._last[0] is not rows:
            self._last = rows, select_share(hash_rows(rows.content(), *self._purpose), self.share)
        return self._last[1]
