"""What jobs are tested with: a list source with late rows, crashes and waits, a manual clock, results."""

from typing import TYPE_CHECKING

from weir.lazy import lazy_names

if TYPE_CHECKING:
    from weir.testing.collect import Collected, run
    from weir.testing.source import Crash, ListSource, ManualClock, Wait

__all__ = ["Collected", "Crash", "ListSource", "ManualClock", "Wait", "run"]

__getattr__ = lazy_names(
    __name__,
    {
        "Collected": "weir.testing.collect",
        "Crash": "weir.testing.source",
        "ListSource": "weir.testing.source",
        "ManualClock": "weir.testing.source",
        "Wait": "weir.testing.source",
        "run": "weir.testing.collect",
    },
)
