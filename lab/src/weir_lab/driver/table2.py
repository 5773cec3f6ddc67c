"""Table 2 of Valsomatzis and Gounaris 2013, counted over the keys of whole data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from weir_lab.driver.settings import SETS
from weir_lab.driver.streams import Streams, count_statistics, generate, selectivity, whole_selectivity

# The joins of the table's first six rows, and their selectivities in I-IV and in V-VI.
_JOINS: tuple[tuple[tuple[str, ...], str, float, float], ...] = (
    (("S1",), "S2", 5e-9, 1e-5),
    (("S1",), "S3", 1e-6, 1e-5),
    (("S2",), "S3", 5e-6, 1e-5),
    (("S1", "S2"), "S3", 1e-3, 1e-4),
    (("S1", "S3"), "S2", 5e-6, 1e-4),
    (("S2", "S3"), "S1", 1e-6, 1e-4),
)
# σ_S as printed: of I-IV that is σ_Mjoin, for all three streams.
_WHOLE = 5e-12
_GAINS = {"S1": 1e2, "S2": 10.0, "S3": 1.0}


@dataclass(frozen=True, slots=True)
class Printed:
    """One number of the table, and ours."""

    data_sets: str
    what: str
    paper: float
    computed: float

    @property
    def is_equal(self) -> bool:
        """But for the last bits of a division."""
        return abs(self.computed - self.paper) <= 1e-12 * self.paper


def compute_table2(tell: Callable[[str], None]) -> list[Printed]:
    """All 18 numbers; the keys of I-IV are those of I, and those of VI are V's."""
    tell("table 2")
    return [*compute_column(generate(SETS[0], 0), "I-IV"), *compute_column(generate(SETS[4], 0), "V-VI")]


def compute_column(streams: Streams, data_sets: str) -> list[Printed]:
    """One column of the table, for streams of the paper's size."""
    even = data_sets == "I-IV"
    figures = [
        Printed(
            data_sets,
            f"{' x '.join(left)} with {right}",
            small if even else large,
            selectivity(streams, left, right),
        )
        for left, right, small, large in _JOINS
    ]
    if even:
        whole = Printed(data_sets, "sigma_Mjoin, printed as sigma_S1", _WHOLE, whole_selectivity(streams))
        return [*figures, *(replace(whole, what=f"{whole.what[:-1]}{i}") for i in (1, 2, 3))]
    gains = count_statistics(streams).gains
    return [*figures, *(Printed(data_sets, f"sigma_{s}", paper, gains[s]) for s, paper in _GAINS.items())]
