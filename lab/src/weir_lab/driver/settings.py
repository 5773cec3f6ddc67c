"""Data sets and results of Valsomatzis and Gounaris 2013 (tables 2 to 5), and our sets with more streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weir.plan.tree import Join, join
from weir_lab.driver.arrivals import Arrivals

SPAN = 10_000_000
# Batches of 0.1 M and 1 M time units.
BATCHES = (100, 10)
BATCH_NAMES: Mapping[int, str] = {100: "0.1M", 10: "1M"}
# The first fifth of the batches is left out, as the states are still small.
WARM = 0.2

SLIPS = (
    "Table 3 gives S2 of V-VI 10^9 rows; its selectivities (sigma_S2 = 10, 10^6 results) need 10^5, which is "
    "taken. Table 2's sigma_S of I-IV is sigma_Mjoin: by the definition of table 1 it is 5 for every stream. "
    "In V-VI S1 and S2 are smaller and end with S3 as in all sets, so they come at 1 row per 1 000 and 100 "
    "time units."
)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Streams that share `shared` keys, each with so many rows `per_key` in each; all other keys are alone.

    `rows` and `arrivals` of each stream; all within `span` time units.
    """

    name: str
    per_key: tuple[int, ...]
    rows: tuple[int, ...]
    arrivals: tuple[Arrivals, ...]
    shared: int = 1_000
    span: int = SPAN

    @property
    def streams(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(f"S{i + 1}" for i in range(len(self.rows)))

    @property
    def plan(self) -> Join:
        """One join of all; each driver probes left to right, which is most selective first."""
        return join(*self.streams)

    def scaled(self, part: float) -> DataSet:
        """A part of the keys, rows and time; each key and each time unit has as many rows as before."""
        return replace(
            self,
            shared=round(part * self.shared),
            rows=tuple(round(part * rows) for rows in self.rows),
            span=round(part * self.span),
        )


def _small(name: str, *arrivals: Arrivals) -> DataSet:
    return DataSet(name, (1, 5, 1_000), (10**6, 10**6, 10**6), arrivals)


def _uneven(name: str, *arrivals: Arrivals) -> DataSet:
    return DataSet(name, (1, 10, 100), (10**4, 10**5, 10**6), arrivals)


SETS = (
    _small("I", "uniform", "uniform", "fast first"),
    _small("II", "uniform", "slow first", "fast first"),
    _small("III", "uniform", "slow first", "sinusoidal"),
    _small("IV", "uniform", "uniform", "20-80"),
    _uneven("V", "uniform", "uniform", "80-20"),
    _uneven("VI", "uniform", "uniform", "20-80"),
)
# Selectivities differ, so that going by them says something.
UNEVEN = ("V", "VI")
# Beyond the paper: more streams, the last one in bursts.
MORE = (
    DataSet("4 streams", (1, 2, 5, 100), (10**5,) * 4, ("uniform", "slow first", "uniform", "20-80")),
    DataSet(
        "5 streams",
        (1, 2, 2, 5, 100),
        (10**5,) * 5,
        ("uniform", "slow first", "fast first", "uniform", "20-80"),
    ),
)

TIMESTAMP, ROUND_ROBIN = "timestamp", "round-robin"
CONSUMPTION, INITIAL, RATE, LEAST = "consumption-rate", "initial-output", "output-rate", "least-work"
INTERLEAVED = (TIMESTAMP, ROUND_ROBIN)
COMPARED = (TIMESTAMP, ROUND_ROBIN, CONSUMPTION, INITIAL, RATE, LEAST)

Figures = Mapping[tuple[str, str], tuple[float, ...]]


def _columns(*rows: tuple[str, str, str]) -> Figures:
    """Figures for I to VI, or the last of them, by (policy, batch)."""
    return {
        (policy, batch): tuple(map(float, figures.split()))
        for policy, *both in rows
        for batch, figures in zip(("0.1M", "1M"), both, strict=True)
    }


# Running time as a multiple of timestamp-based.
TABLE_4 = _columns(
    (ROUND_ROBIN, "0.985 1.002 1.003 0.966 0.948 1.128", "1.012 1.002 1.014 0.997 0.927 0.926"),
    (TIMESTAMP, "1 1 1 1 1 1", "1 1 1 1 1 1"),
    (CONSUMPTION, "0.863 0.785", "0.808 0.728"),
    (INITIAL, "0.854 0.859 0.871 0.744 0.882 0.785", "0.791 0.773 0.811 0.801 0.5 0.611"),
    (RATE, "0.903 0.840 0.884 0.755 0.906 0.956", "0.769 0.777 0.815 0.789 0.851 0.819"),
)
# The share of a batch's results that are there at half of timestamp-based's running time.
TABLE_5 = _columns(
    (ROUND_ROBIN, "0.5 0.45 0.5 0.55 0.85 0.65", "0.4 0.4 0.45 0.5 0.9 0.55"),
    (TIMESTAMP, "0.45 0.5 0.5 0.5 0.5 0.5", "0.45 0.45 0.45 0.45 0.45 0.45"),
    (CONSUMPTION, "0.1 0.4", "0.05 0.35"),
    (INITIAL, "0.85 0.85 0.8 0.65 0.95 0.8", "0.85 0.85 0.8 0.6 1 0.95"),
    (RATE, "0.85 0.85 0.8 0.6 0.9 0.7", "0.85 0.85 0.8 0.6 0.95 0.7"),
)


def paper(table: Figures, data_set: str, policy: str, batch: str) -> float | None:
    """What the paper has there."""
    figures = table.get((policy, batch), ())
    names = [data_set.name for data_set in SETS][-len(figures) :] if figures else []
    return figures[names.index(data_set)] if data_set in names else None
