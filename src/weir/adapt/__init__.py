"""When do we change our mind? What is known of the streams, and the plan and the shedding that follow."""

from weir.adapt.admit import admitted
from weir.adapt.analyse import Movable, Running, Verdict, analyse, learning
from weir.adapt.average import Average
from weir.adapt.balance import SECOND_JOB, Balance, is_uneven, work
from weir.adapt.controller import Controller, Scope
from weir.adapt.driver import driver_order
from weir.adapt.due import is_due
from weir.adapt.estimate import graph_of
from weir.adapt.held import Held, alive, missing
from weir.adapt.learned import learned
from weir.adapt.limit import limits
from weir.adapt.measure import Seen, seen_in
from weir.adapt.observed import Observed
from weir.adapt.planner import Planned, Wish, charted, explained
from weir.adapt.recall import Recall
from weir.adapt.settings import Adapt, adapting
from weir.adapt.shedding import AS_ASKED, SHED
from weir.adapt.shown import shown
from weir.adapt.statistics import Statistics

__all__ = [
    "AS_ASKED",
    "SECOND_JOB",
    "SHED",
    "Adapt",
    "Average",
    "Balance",
    "Controller",
    "Held",
    "Movable",
    "Observed",
    "Planned",
    "Recall",
    "Running",
    "Scope",
    "Seen",
    "Statistics",
    "Verdict",
    "Wish",
    "adapting",
    "admitted",
    "alive",
    "analyse",
    "charted",
    "driver_order",
    "explained",
    "graph_of",
    "is_due",
    "is_uneven",
    "learned",
    "learning",
    "limits",
    "missing",
    "seen_in",
    "shown",
    "work",
]
