"""Add up the weights of results, and estimate the variance of their sum.

With rows kept independently, row u with probability p(u), and T(u) for the weight of all results with row u,
the sum of (1 - p(u)) T(u)^2 over the rows found estimates the variance of the sum of weights, but for pairs
of results with several rows in common (Horvitz and Thompson 1952). Of these, the pairs of a result with
itself are put right; others make the variance too large rather than too small. What a path finds or not is
counted as a choice of its driver's row.

A joined row tells only the product of the probabilities of its rows, so each of them counts with the product:
too large again.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from weir.kernel.keys import Bools, Floats, Int64s
from weir.kernel.partial import Group, Partial
from weir.stats.weight_sums import WeightSums

# The most sums by row that are held; of more rows, a share is chosen by their hashes and stands for all.
_MOST_ROWS = 1 << 17


class ResultWeights:
    """Running sums of one batch in one partition, for each driver of the root."""

    def __init__(self) -> None:
        self._drivers: dict[str, _DriverWeights] = defaultdict(_DriverWeights)
        self._shared = _Variance()

    def add(self, results: Partial) -> None:
        """Add results with their weights."""
        driver = self._drivers[results.groups[0].schema.node]
        driver.results += results.rows
        weights = results.weights
        if weights is None:
            driver.weight += results.rows
            return
        if all(group.weights is None for group in results.groups):
            driver.weight += driver.own.add_path(results.groups[0], weights)
            return
        driver.weight += float(weights.sum())
        of_rows = np.ones(results.rows)
        for group in results.groups:
            if group.weights is not None:
                of_rows *= group.weights
                self._shared.add(group, weights, _missing_share(group.weights))
        missing_rows = _missing_share(of_rows)
        self._shared.count_once(weights, missing_rows)
        of_path = np.divide(weights, of_rows, out=np.zeros_like(weights), where=of_rows > 0)
        driver.own.add(results.groups[0], weights, _missing_share(of_path))
        driver.own.count_once(weights, _missing_share(weights) - missing_rows)

    def get(self) -> dict[str, WeightSums]:
        """Return the sums so far, by driver; the variance that they share is divided by their weights."""
        total, shared = sum(driver.weight for driver in self._drivers.values()), self._shared.get()
        return {
            name: WeightSums(
                driver.results,
                driver.weight,
                driver.own.get(),
                shared * driver.weight / total if total else 0.0,
            )
            for name, driver in self._drivers.items()
        }


class _DriverWeights:
    """The sums of one driver, and the variance of what its path does."""

    def __init__(self) -> None:
        self.results, self.weight, self.own = 0, 0.0, _Variance()


class _Variance:
    """One part of the variance: the sums of each row, by stream."""

    def __init__(self) -> None:
        self._rows: dict[str, _RowSums] = defaultdict(_RowSums)
        self._itself = 0.0  # what pairs of a result with itself should add, less what rows have added

    def add(self, group: Group, weights: Floats, missing: Floats) -> None:
        """Add results to the sums of a group's rows, each missing with a probability."""
        for stream in group.schema.streams:
            self._rows[stream].add(group.content_of(stream), weights, missing)
            self._itself -= float((weights**2 * missing).sum())

    def add_path(self, group: Group, weights: Floats) -> float:
        """Add results that only the choice of their driver's rows may miss; return the sum of their weights.

        The same as `add` and `count_once`, but summed up by row before anything is hashed or sorted.
        """
        totals, missing = _sum_by_row(group, weights)
        found, streams = np.flatnonzero(totals), group.schema.streams
        for stream in streams:
            self._rows[stream].add_sums(group.rows.content_of(stream)[found], totals[found], missing[found])
        if len(streams) > 1:
            self._itself -= (len(streams) - 1) * float((weights * np.maximum(weights - 1, 0)).sum())
        return float(totals.sum())

    def count_once(self, weights: Floats, missing: Floats) -> None:
        """Say with which probability a result is missing, whichever of its rows is."""
        self._itself += float((weights**2 * missing).sum())

    def get(self) -> float:
        return max(0.0, sum(rows.square() for rows in self._rows.values()) + self._itself)


def _missing_share(weights: Floats) -> Floats:
    """Return the probability with which each row is missing; rows of no weight count for nothing."""
    return np.where(weights > 0, 1 - 1 / np.maximum(weights, 1.0), 0.0)


def _sum_by_row(group: Group, weights: Floats) -> tuple[Floats, Floats]:
    """Sum up the weights of the results of each row of a group, and the parts that stand for missing ones."""
    if group.picks is None:
        return weights, np.maximum(weights - 1, 0.0)
    if weights.strides == (0,) and len(weights):  # one number for all
        counts = np.bincount(group.picks).astype(np.float64)
        return counts * weights[0], counts * max(float(weights[0]) - 1, 0.0)
    totals = np.bincount(group.picks, weights).astype(np.float64)
    return totals, np.bincount(group.picks, np.maximum(weights - 1, 0.0)).astype(np.float64)


class _RowSums:
    """T(u) and (1 - p(u)) T(u) of the rows u, by a hash of each, for as many rows as memory allows."""

    def __init__(self) -> None:
        self._hashes: list[Int64s] = []
        self._weights: list[Floats] = []
        self._missing: list[Floats] = []
        self._count, self._level = 0, 0

    def add(self, hashes: Int64s, weights: Floats, missing: Floats) -> None:
        """Add results: their weights, and the probability with which each is missing."""
        self.add_sums(hashes, weights, weights * missing)

    def add_sums(self, hashes: Int64s, weights: Floats, missing: Floats) -> None:
        """Add to the sums of some rows."""
        if self._level:
            chosen = self._is_chosen(hashes)
            hashes, weights, missing = hashes[chosen], weights[chosen], missing[chosen]
        self._hashes.append(hashes)
        self._weights.append(weights)
        self._missing.append(missing)
        self._count += len(hashes)
        if self._count > 2 * _MOST_ROWS:
            self._compact()

    def square(self) -> float:
        """Return the sum of (1 - p(u)) T(u)^2."""
        if not self._hashes:
            return 0.0
        self._compact()
        return float((self._weights[0] * self._missing[0]).sum()) * 2.0**self._level

    def _compact(self) -> None:
        hashes = np.concatenate(self._hashes)
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        first = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1])))[: len(hashes)]
        weights, missing = (
            np.add.reduceat(np.concatenate(each)[order], first) if len(first) else np.zeros(0)
            for each in (self._weights, self._missing)
        )
        self._hashes, self._weights, self._missing = [hashes[first]], [weights], [missing]
        while len(self._hashes[0]) > _MOST_ROWS:
            self._level += 1
            chosen = self._is_chosen(self._hashes[0])
            for each in (self._weights, self._missing):
                each[0] = each[0][chosen]
            self._hashes[0] = self._hashes[0][chosen]
        self._count = len(self._hashes[0])

    def _is_chosen(self, hashes: Int64s) -> Bools:
        chosen: Bools = hashes.view(np.uint64) >> np.uint64(64 - self._level) == 0
        return chosen
