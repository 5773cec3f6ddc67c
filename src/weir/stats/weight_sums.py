"""What the weights of results say: how many exact results there are, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WeightSums:
    """Sums over the results of one driver, or of all.

    `weight` is the sum of their weights, which estimates how many the exact join has. Its variance has two
    parts: `own`, from choices among the rows of the batch, and `shared`, from those among rows of states,
    which the next batches share.
    """

    results: int = 0
    weight: float = 0.0
    own: float = 0.0
    shared: float = 0.0

    def __add__(self, other: WeightSums) -> WeightSums:
        return WeightSums(
            self.results + other.results,
            self.weight + other.weight,
            self.own + other.own,
            self.shared + other.shared,
        )

    def scale(self, factor: float) -> WeightSums:
        """The sums if each result stands for so many times as many."""
        return WeightSums(self.results, factor * self.weight, factor**2 * self.own, factor**2 * self.shared)
