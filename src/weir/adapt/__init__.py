"""When do we change our mind? For now: what is known of the streams, and the plan that follows from it."""

from weir.adapt.balance import SECOND_JOB, Balance, is_uneven, work
from weir.adapt.estimate import graph_of
from weir.adapt.matching import Matching
from weir.adapt.measure import Seen, seen_in
from weir.adapt.planner import Planned, Wish, charted, explained
from weir.adapt.recall import Recall
from weir.adapt.shedding import SHED
from weir.adapt.shown import shown

__all__ = [
    "SECOND_JOB",
    "SHED",
    "Balance",
    "Matching",
    "Planned",
    "Recall",
    "Seen",
    "Wish",
    "charted",
    "explained",
    "graph_of",
    "is_uneven",
    "seen_in",
    "shown",
    "work",
]
