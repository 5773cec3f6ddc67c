"""When do we change our mind? What is known of the streams, and the plan and the shedding that follow."""

from weir.adapt.analyse import Movable, PlanInForce, Recommendation, allowance_for_learning, analyse
from weir.adapt.average import Average
from weir.adapt.change_detection import should_analyse
from weir.adapt.controller import Controller, Scope
from weir.adapt.cpu_limit import limits
from weir.adapt.describe_decision import describe_decision
from weir.adapt.driver import driver_order
from weir.adapt.estimate import estimate_join_graph
from weir.adapt.eviction import choose_kept
from weir.adapt.fit_join_graph import fit_join_graph
from weir.adapt.observed import Observed
from weir.adapt.planner import PlannedJoin, PlanRequest, chart_plan, explain_plan
from weir.adapt.recall import Recall
from weir.adapt.settings import Adapt, resolve_adapt
from weir.adapt.shedding import AS_ASKED, SHED
from weir.adapt.skew import SECOND_JOB, SkewMonitor, is_uneven, work
from weir.adapt.slice_summary import SliceSummary, live_summaries, lost_results
from weir.adapt.statistics import Statistics
from weir.adapt.table_statistics import TableStatistics, measure_tables

__all__ = [
    "AS_ASKED",
    "SECOND_JOB",
    "SHED",
    "Adapt",
    "Average",
    "Controller",
    "Movable",
    "Observed",
    "PlanInForce",
    "PlanRequest",
    "PlannedJoin",
    "Recall",
    "Recommendation",
    "Scope",
    "SkewMonitor",
    "SliceSummary",
    "Statistics",
    "TableStatistics",
    "allowance_for_learning",
    "analyse",
    "chart_plan",
    "choose_kept",
    "describe_decision",
    "driver_order",
    "estimate_join_graph",
    "explain_plan",
    "fit_join_graph",
    "is_uneven",
    "limits",
    "live_summaries",
    "lost_results",
    "measure_tables",
    "resolve_adapt",
    "should_analyse",
    "work",
]
