"""One attack on one query, and how that ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

End = Literal["exact", "refused", "repaired", "unclear", "not exact", "stuck"]
_GOOD: tuple[End, ...] = ("exact", "refused", "repaired")


@dataclass(frozen=True, slots=True)
class Trial:
    """What was done, how it ended, and what was said.

    "refused" is an error of one sentence before anything wrong is published, "repaired" one after which
    `weir state repair` led to exact results; "unclear" is any other error, and "stuck" a query that does not
    go on though it should.
    """

    attack: str
    what: str
    end: End
    said: str = ""

    @property
    def is_good(self) -> bool:
        """True if nothing was lost, doubled or made up, and every error was clear."""
        return self.end in _GOOD

    def tell(self, number: int) -> None:
        """Print the trial on stderr."""
        print(
            f"{self.attack} {number}: {self.what}: {self.end} {self.said[:300]}", file=sys.stderr, flush=True
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The trials of an attack beside what it had to show; `refusal` says why it could not be run."""

    attack: str
    wanted: str
    trials: tuple[Trial, ...]
    enough: int
    seconds: float
    seed: int
    commit: str
    refusal: str = ""

    @property
    def is_reached(self) -> bool:
        """True if there were enough trials and all of them are good."""
        return not self.refusal and len(self.trials) >= self.enough and all(t.is_good for t in self.trials)

    def describe(self) -> str:
        """What happened, in a few words."""
        if self.refusal:
            return self.refusal
        return f"{len(self.trials)} trials: {count_ends(self.trials)}; {self.seconds:.0f} s"


def count_ends(trials: Sequence[Trial]) -> str:
    """How often each end came.

    >>> count_ends([Trial("a", "b", "exact"), Trial("a", "c", "exact"), Trial("a", "d", "refused")])
    '2 exact, 1 refused'
    """
    ends = [trial.end for trial in trials]
    return ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
