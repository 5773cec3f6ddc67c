"""The sampled rows of a path: they pass every gate of their node, to tell what the gates cost in results.

What is correct: a partial is sampled iff the row that drives it is, and that is decided by a lot from the
row's content, the batch, the node and the driver. So no mark has to travel with a partial, and all that a
sampled row can find in the states of its node is found.
"""

from __future__ import annotations

import numpy as np

from weir.kernel.keys import Bools
from weir.kernel.partial import Partial, Rows
from weir.kernel.row_hash import hash_limit, row_hashes
from weir.shed.allowance import Allowance
from weir.stats.batch import Hop


class ProbeSample:
    """Who is sampled on the path that a hop is part of, during one batch."""

    def __init__(self, hop: Hop, batch: int, share: float) -> None:
        self._names = (batch, "sample", hop.node, hop.driver)
        self._share = share
        self._last: tuple[Rows, Bools] | None = None

    @staticmethod
    def of(allowance: Allowance | None, hop: Hop, batch: int) -> ProbeSample | None:
        """The sample that an allowance asks for; None if it asks for none."""
        return (
            ProbeSample(hop, batch, allowance.sample) if allowance is not None and allowance.sample else None
        )

    def marks(self, partial: Partial) -> Bools:
        """Which rows of a partial are sampled."""
        driver = partial.groups[0]
        marks = self._of_driver(driver.rows)
        return marks if driver.picks is None else marks[driver.picks]

    def count(self, partial: Partial) -> int:
        """How many rows of a partial are sampled."""
        return int(np.count_nonzero(self.marks(partial)))

    def _of_driver(self, rows: Rows) -> Bools:
        # All chunks made from one driver slice come one after the other.
        if self._last is None or self._last[0] is not rows:
            self._last = rows, hash_limit(row_hashes(rows.content(), *self._names), self._share)
        return self._last[1]
