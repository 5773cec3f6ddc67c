"""What the code calls things today: the one place to change when it renames them, golden files stay.

In the tables the word of the golden files stands left, the key or attribute of the code right; sentences are
patterns, whose named groups are the figures that count. After the tables come the few functions that reach
into the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

DECISIONS, MANIFESTS = "weir/decisions", "weir/manifests"  # folders of a checkpoint
BODY = "body"  # of a file there, beside its checksum
DECISION = {
    "plan": "plan",
    "driver_order": "driver_order",
    "freshness_clock": "clock",
    "idle_streams": "idle",
    "candidates_at_most": "candidates",
    "selectivities": "selectivities",
    "results_per_row": "gains",
    "placement": "placement",
    "reason": "reason",
    "allowance": "allowance",
    "allowance_while_migrating": "meanwhile",
    "migration_steps_at_most": "effort",
    "attempt": "attempt",
}
PLACEMENT = {
    "spread": "spread",
    "partitions": "partitions",
    "cell_microseconds": "cell",
    "partition_of_cell": "homes",
    "relocates": "relocate",
}
STORED_ALLOWANCE = {
    "probes": "probes",
    "choose": "choose",
    "sample": "sample",
    "ages": "ages",
    "dropped_rows": "drop",
}
MANIFEST = {
    "watermark": "watermark",
    "newest": "newest",
    "plan": "plan",
    "placement": "placement",
    "recall": "recall",
    "skew": "balance",
    "evicted": "gone",
    "partitions": "parts",
}
SKEW = {"rows": "rows", "microseconds": "micros", "uneven_batches": "uneven"}
RECALL = {"batches_without_skipping": "quiet", "last_skipped": "last", "paths": "paths"}
PARTITION = {
    "next_arrival": "next_place",
    "next_numbers": "next_numbers",
    "migration": "standing",
    "slices": "slices",
}
MIGRATION = {"plan_that_answers": "plan", "states_done": "done", "state_being_built": "building"}
BUILDING = {
    "state": "node",
    "driver": "driver",
    "since_batch": "since",
    "filled_back_to": "until",
    "rows_done": "rows",
    "rows_left": "left",
    "steps": "effort",
}
SLICE = {
    "state": "node",
    "batch": "batch",
    "rank": "rank",
    "rows": "rows",
    "bytes": "bytes",
    "deadline": "deadline",
    "sorted_by": "sorted_by",
    "ranges": "spans",
}
TREE = {"inputs": "inputs", "probing_orders": "orders", "window": "window"}
WINDOW = {"microseconds": "microseconds", "rows": "rows"}

# Of both engines' progress: `weir` is our section of Spark's.
SECTION, BATCH, INPUT_ROWS = "weir", "batchId", "numInputRows"
PROGRESS = {
    "results": "numOutputRows",
    "stale_results": "numRowsStale",
    "rows_shed": "numRowsShed",
    "estimated_recall": "estimatedRecall",
    "oldest_age": "oldestAge",
    "watermark": "watermark",
    "decision": "decision",
    "streams": "streams",
    "states": "state",
    "hops": "hops",
    "lag_histograms": "lags",
}
PROGRESS_LOCAL = {"order_of_streams": "order"}
PROGRESS_SPARK = {
    "newest": "newest",
    "placement": "placement",
    "statistics": "statistics",
    "partitions": "partitions",
    "migration_work": "building",
}
SHOWN_DECISION = {
    "plan": "plan",
    "probing_orders": "orders",
    "driver_order": "driverOrder",
    "reason": "reason",
    "migration": "building",
    "allowance": "allowance",
}
SHOWN_ALLOWANCE = {
    "probes": "probes",
    "choose": "choose",
    "sample": "sample",
    "ages": "ages",
    "dropped_rows": "drop",
}
SHOWN_AGES = {"every": "every", "kept": "kept"}
SHOWN_PLACEMENT = {"spread": "spread", "partitions": "partitions", "relocates": "relocated"}
STATISTICS = {
    "batches": "batches",
    "rates": "rates",
    "selectivities": "selectivities",
    "event_seconds": "span",
    "watermark_lag": "lag",
    "oldest_age": "oldest",
}
STREAM = {
    "input_rows": "numInputRows",
    "late_rows": "numRowsDroppedByWatermark",
    "rows_without_time": "numRowsNullTime",
    "dropped_rows": "numRowsShed",
}
STATE = {
    "rows": "numRowsTotal",
    "bytes": "memoryUsedBytes",
    "slices": "numSlices",
    "evicted_rows": "numRowsShed",
}
PARTITION_LOAD = {"input_rows": "numInputRows", "rows": "numRowsTotal", "bytes": "memoryUsedBytes"}
MIGRATION_WORK = {"steps": "steps"}
HOP = {
    "probes": "probes",
    "probes_skipped": "skipped",
    "comparisons": "comparisons",
    "matches": "matches",
    "probes_sampled": "sampled",
    "matches_sampled": "sampledMatches",
    "probes_narrowed": "narrowed",
    "slices_not_visited": "slicesNotVisited",
}
# The moments of a batch on Spark.
BEFORE_DECIDING, SLICES_BUILT, RESULTS_EMITTED = "decide", "built", "emitted"
LAGS = {"reference_stream": "first", "histograms": "lags"}
LAG_HISTOGRAM = {"low": "low", "high": "high", "counts": "counts"}

# A recommendation of the controller, an object; `is_pressing` and the like are its attributes.
RECOMMENDATION = {
    "plan": "plan",
    "allowance": "allowance",
    "recall": "recall",
    "cpu": "cpu",
    "memory": "memory",
    "gain": "gain",
    "reason": "reason",
    "probing_scale": "scale",
    "changes_plan": "moves",
    "is_pressing": "is_pressing",
    "warnings": "warnings",
}
ALLOWANCE = STORED_ALLOWANCE  # attributes of the object
AGES = {"every": "every", "kept": "kept"}

HOP_TEXT = re.compile(r"(?P<driver>.+) ⋉ (?P<partner>.+) in (?P<node>.+)")
ORDERS_TEXT = re.compile(r"(?P<driver>.+) in (?P<node>.+)")
# Stored columns are called `stream@kind`; so are states that only keep the order of a row window.
COLUMN_KINDS = {
    "time": "time",
    "key": "key",
    "place": "arrival",
    "number": "number",
    "arrival": "clock",
    "line": "row_window",
}
TIMES = ("@time", "@arrival")  # kinds that are times
SORTED_BY = {"ByKey": "key", "ByValue": "value", "ByTime": "time"}
ACCESS = {
    "KeyAccess": "key",
    "ValueAccess": "range",
    "VectorAccess": "vector",
    "TimeAccess": "time",
}
BEFORE_ALL = -(2**62)  # the clock before there was one

# What is said in prose, each sentence with a stable word; where one is put differently, so is its pattern.
_USAGE = (
    r"(?:CPU (?P<{0}_cpu>[\d.e+-]+%)(?: of (?P<{0}_cpu_limit>[\d.e+-]+%) allowed)?)?(?: and |, )?"
    r"(?:any CPU, )?(?:any memory)?"
    r"(?:state (?P<{0}_state>[\d.]+ \w+)(?: of (?P<{0}_state_limit>[\d.]+ \w+) allowed)?)?(?:, any memory)?"
)
_BY = r"(?:rose (?P<rose>[\d.e+]+) times|fell to (?P<fell>[\d.e-]+) of before|(?P<new>are known))"
BETWEEN_SENTENCES = ";:, "
WARNINGS = {
    "almost_all_skipped": r"what cannot be skipped takes (?P<rest>[\d.e-]+%) of CPU, and "
    r"(?P<allowed>[\d.e-]+%) are allowed, so almost every probe is skipped",
}
REASONS = {
    "as_asked": r"as asked",
    "smaller_after_failures": r"smaller after (?P<attempts>\d+) failed attempts",
    "by_hand": r"golden: (?P<text>[^;:]*)",
    "shed_from_the_start": r"the plan takes more CPU than allowed, so some probes are skipped",
    "partitions_changed": r"(?P<now>\d+) partitions after (?P<before>\d+), (?P<how>\w+) adjustment",
    "few_keys_dominate": r"a few keys have most of the work, so spread='(?P<spread>\w+)' from here on",
    "over_budget": r"the join takes " + _USAGE.format("join"),
    "rates_changed": r"rates of (?P<streams>[\w, ]+?) " + _BY,
    "matches_changed": r"matches of (?P<pairs>[\w+, ]+?) " + _BY,
    "lags_changed": r"lags between the streams are others",
    "work_changed": r"the join's work " + _BY,
    "pace_changed": r"event time per second " + _BY,
    "other_plan": r"with the plan (?P<plan>\([\w ()]+\)) (?=all)",
    "other_probing_orders": r"with other probing orders (?=all)",
    "takes": r"all of it takes " + _USAGE.format("all"),
    "nothing_skipped": r"so nothing is skipped",
    "some_skipped": r"so about (?P<recall>\d+%) of the results are looked for, by (?P<way>[\w -]+)",
}
SECTIONS = {
    "streams": "streams",
    "conditions": "conditions",
    "classes": "key_classes",
    "time bounds": "time_bounds",
    "select": "columns",
    "basic windows": "basic_windows",
    "budget": "budget",
    "plan": "plan",
}
TREE_LINES = " │├└─"
_FIGURES = (
    r"(?:: (?P<rate>[\d.,e+]+) (?:rows|results)/s(?:, state (?P<rows>[\d.,]+) rows \((?P<state>[^)]+)\))?"
    r", CPU (?P<cpu>[\d.e+-]+%))?"
)
EXPLAINED = {
    "stream": r"(?P<stream>\w+): time (?P<time>\w+), window (?P<window>.+?)(?:, kept (?P<kept>.+?))?"
    r"(?:, late (?P<late>.+?))?(?:, fresh (?P<fresh>.+?))?",
    "condition": r"(?P<kind>filter|equality|comparison|band|cosine|residual|time bound): (?P<text>.+)",
    "time_bound": r"(?P<later>\w+) - (?P<earlier>\w+) (?P<op><=?) (?P<length>.+)",
    "key_class": r"(?P<name>.+?): (?P<members>.+) as (?P<type>.+)",
    "partitioned": r"over (?:(?P<one>one partition)|(?P<partitions>\d+) partitions (?:by (?P<key>\w+)"
    r"|(?P<time>by slices of time)|(?P<shared>that share all slices)"
    r"|by segments of (?P<length>.+) of stream '(?P<master>\w+)'))",
    "root": r"join \(root\)" + _FIGURES,
    "input": r"(?P<input>\w+), probes (?P<probes>[\w ,()]+)" + _FIGURES,
    "not_costed_without_rates": r"\(no rates are known, so nothing is costed; give rates=\)",
    "not_costed_with_own_windows": r"\(a plan whose joins have windows of their own is not costed\)",
    "total": r"total " + _USAGE.format("total") + r"(?:; allowed " + _USAGE.format("limit") + r")?",
    "no_plan_fits": r"why: no plan fits, this one is least over \((?P<excess>[\d.]+) times\); "
    r"found by (?P<search>.+)",
    "least_cpu": r"why: nothing is limited, and it takes the least CPU; found by (?P<search>.+)",
    "fits_the_limits": r"why: it fits the limits; found by (?P<search>.+)",
    "rival": r"the (?P<name>mjoin|bjtree) (?P<plan>\(.+\)) would take " + _USAGE.format("rival") + r": "
    r"(?P<fits>fits|does not fit)",
    "shed_by_hand": r"shed, as the allowance says:",
    "shed": r"shed by (?P<way>.+): about (?P<recall>\d+%) of the results are kept",
    "probe_share": r"(?P<hop>.+): (?P<share>[\d.e-]+%) of the rows that reach it probe",
    "ages": r"(?P<hop>.+): looks at partners aged (?P<ages>.+)",
    "dropped": r"(?P<stream>\w+): (?P<share>[\d.e-]+%) dropped",
    "sample": r"a sample of (?P<share>[\d.e-]+%) passes every hop",
}
# Values inside sentences that are words themselves.
VALUES = {
    "exhaustive search": "exhaustive",
    "does not fit": "too much",
    "time bound": "time_bound",
    "by slices of time": "by time",
    "that share all slices": "shared",
}


def hop_of(found: Any) -> tuple[str, str, str]:
    """Driver, partner and node of a hop, as an object, as a list of the checkpoint, or as text."""
    if isinstance(found, str):
        text = HOP_TEXT.fullmatch(found)
        assert text is not None, f"{found!r} is no hop"
        return text["driver"], text["partner"], text["node"]
    driver, node, partner = found if isinstance(found, list) else (found.driver, found.node, found.partner)
    return driver, partner, node


def tree_of(plan: Any) -> Any:
    """A plan object as the checkpoint has it."""
    from weir.spark.trees import tree_to_json

    return tree_to_json(plan)


def physical_of(query: Any, plan: Any) -> dict[str, Any]:
    """How each hop of a plan finds its partners, and what they must still fulfil; all hops by name."""
    from weir.expr import show
    from weir.kernel import compile_plan

    return {
        path.hop: {
            "access": ACCESS[type(path.access).__name__],
            "residual": [show(expr) for expr in path.residual],
            "expensive": [show(expr) for expr in path.costly],
        }
        for node in compile_plan(query, plan).nodes
        for paths in node.paths
        for path in paths
    }


def learned_of(query: Any) -> dict[str, Any] | None:
    """What a local query has learned of its streams; None if nothing asked for it."""
    known = query.statistics
    if not known.batches:
        return None
    selectivities = known.selectivities(query.plan)
    return {"rates": known.rates, "selectivities": selectivities, "results_per_row": known.gains}


def slices_of(query: Any) -> list[Any]:
    """The slices that a local query keeps."""
    return [one for found in query.state.slices.values() for one in found]


def listen(act: Callable[[str, int], None]) -> Callable[[], None]:
    """Call `act` with the phase and the number of each batch on Spark; what comes back stops that."""
    from weir.spark import listen

    return listen(act)


def recommends(query: Any, plan: Any, allowance: Any, budget: Any, **more: Any) -> Any:
    """A controller for the simulated machine."""
    from weir.adapt import Controller, Running

    return Controller(query, Running(plan, allowance), budget, **more)


def little_migration(monkeypatch: Any, steps: int) -> None:
    """So few steps in one batch that making another plan's states takes several."""
    from weir.kernel import migrate

    monkeypatch.setattr(migrate, "LEAST", steps)
    monkeypatch.setattr(migrate, "SHARE", 0.1)


def typical_costs(monkeypatch: Any) -> None:
    """Plans are weighed by typical costs, not by those of the machine that the tests run on."""
    from weir.adapt import planner

    monkeypatch.setattr(planner, "calibrated", lambda: planner.TYPICAL)


def slice_entry(kept: Any) -> dict[str, Any]:
    """A slice in memory with the keys that a manifest has for one."""
    attributes = {ours: theirs for ours, theirs in SLICE.items() if ours != "state"}
    found = {theirs: getattr(kept, theirs) for theirs in attributes.values()}
    return {SLICE["state"]: kept.layout.node, **found}
