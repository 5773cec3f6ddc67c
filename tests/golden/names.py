"""What the code calls things today: the one place to change when it renames them, golden files stay.

In the tables the word of the golden files stands left, the key or attribute of the code right; sentences are
patterns, whose named groups are the figures that count. After the tables come the few functions that reach
into the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

DECISIONS, MANIFESTS = "weir/decisions", "weir/manifests"  # folders of a checkpoint
CONTENT, MANIFEST_IN_FILE = "content", "manifest"  # in a sealed file, beside what it says of itself
BODY = "body"  # of a file there, beside its checksum
DECIDED, ATTEMPT = "decision", "attempt"  # in a file of a decision
DECISION = {
    "plan": "plan",
    "driver_order": "driver_order",
    "freshness_clock": "clock",
    "idle_streams": "idle",
    "candidates_at_most": "max_candidates",
    "selectivities": "selectivities",
    "results_per_row": "results_per_row",
    "placement": "placement",
    "reason": "reason",
    "allowance": "allowance",
    "allowance_while_migrating": "interim_allowance",
    "migration_steps_at_most": "migration_steps",
    "attempt": ATTEMPT,
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
    "skew": "skew",
    "partitions": "parts",
}
SKEW = {"rows": "rows", "microseconds": "micros", "uneven_batches": "skewed_batches"}
RECALL = {
    "batches_without_skipping": "exact_batches",
    "last_skipped": "shed_at",
    "last_unknown": "unknown_at",
    "states_lack_rows_since": "blind_at",
    "results": "results",
    "exact_results": "exact",
    "own_variance": "own",
    "shared_deviation": "shared",
    "relative_variance": "relative",
    "batches": "batches",
}
PARTITION = {
    "next_arrival": "next_sequence",
    "next_numbers": "next_row_numbers",
    "migration": "migration",
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
    "steps": "steps",
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
STREAM_OF_LEAF = "stream"
HOP_PARTS = {"driver": "driver", "partner": "partner", "node": "node"}
WINDOW = {"microseconds": "microseconds", "rows": "rows"}

# Of both engines' progress: `weir` is our section of Spark's.
SECTION, BATCH, INPUT_ROWS = "weir", "batchId", "numInputRows"
PROGRESS = {
    "results": "numOutputRows",
    "stale_results": "numRowsStale",
    "rows_shed": "numRowsShed",
    "estimated_recall": "estimatedRecall",
    "recall_interval": "estimatedRecallInterval",
    "recall_of_windows": "estimatedRecallOfWindows",
    "interval_of_windows": "estimatedRecallOfWindowsInterval",
    "oldest_age": "oldestAge",
    "watermark": "watermark",
    "decision": "decision",
    "streams": "streams",
    "states": "state",
    "hops": "hops",
    "lag_histograms": "lags",
}
PROGRESS_LOCAL = {"order_of_streams": "driverOrder"}
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
    "watermark_lag": "watermarkDelay",
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
BEFORE_DECIDING, SLICES_BUILT, RESULTS_EMITTED = "decide", "sync_batch", "sync_results"
LAGS = {"reference_stream": "first", "histograms": "lags"}
LAG_HISTOGRAM = {"low": "low", "high": "high", "counts": "counts"}

# A recommendation of the controller, an object; `is_urgent` and the like are its attributes.
RECOMMENDATION = {
    "plan": "plan",
    "allowance": "allowance",
    "recall": "recall",
    "cpu": "cpu",
    "memory": "memory",
    "reason": "reason",
    "changes_plan": "changes_plan",
    "is_notable": "is_notable",
}
ALLOWANCE = STORED_ALLOWANCE  # attributes of the object
AGES = {"every": "every", "kept": "kept"}

HOP_TEXT = re.compile(r"(?P<driver>.+) ⋉ (?P<partner>.+) in (?P<node>.+)")
ORDERS_TEXT = re.compile(r"(?P<driver>.+) in (?P<node>.+)")
# Stored columns are called `stream@kind`; so are states that only keep the order of a row window.
COLUMN_KINDS = {
    "time": "time",
    "key": "key",
    "sequence": "arrival",
    "row_number": "number",
    "arrival": "batch",
    "row_order": "row_window",
}
TIMES = "@time"  # the kind that is a time
SORTED_BY = {"ByKey": "key", "ByValue": "value", "ByTime": "time"}
ACCESS = {
    "KeyAccess": "key",
    "ValueAccess": "range",
    "VectorAccess": "vector",
    "TimeAccess": "time",
}

# What is said in prose, each sentence with a stable word; where one is put differently, so is its pattern.
_USAGE = (
    r"(?:CPU (?P<{0}_cpu>[\d.e+-]+%)(?: \(limit (?P<{0}_cpu_limit>[\d.e+-]+%)\))?)?(?: and |, )?"
    r"(?:any CPU, )?(?:any memory)?"
    r"(?:state (?P<{0}_state>[\d.]+ \w+)(?: \(limit (?P<{0}_state_limit>[\d.]+ \w+)\))?)?(?:, any memory)?"
)
_BY = (
    r"(?:rose (?P<rose>[\d.e+]+) times|fell to (?P<fell>[\d.e-]+) of the earlier value|(?P<new>became known))"
)
BETWEEN_SENTENCES = ";:, "
_WHAT = r"(?:shedding by (?P<way>[\w -]+?)|the plan (?P<plan>\([\w ()]+\)))"
REASONS = {
    "as_asked": r"as requested",
    "smaller_after_failures": r"smaller after (?P<attempts>\d+) failed attempts",
    "by_hand": r"golden: (?P<text>[^;:]*)",
    "shed_from_the_start": r"the plan exceeds the CPU limit, so some work is shed",
    "partitions_changed": r"(?P<now>\d+) partitions after (?P<before>\d+), (?P<how>\w+) adjustment",
    "evicted": r"slices (?:are|were) evicted to keep the memory budget",
    "few_keys_dominate": r"a few keys have most of the work, so spread='(?P<spread>\w+)' from here on",
    "rates_changed": r"rates of (?P<streams>[\w, ]+?) " + _BY,
    "matches_changed": r"selectivities of (?P<pairs>[\w+, ]+?) " + _BY,
    "lags_changed": r"lags between streams changed",
    "pace_changed": r"event time per second " + _BY,
    "on_trial": r"try it for a window",
    "promised": rf"{_WHAT} should find (?P<promised>\d+%) of the results",
    "lost": rf"{_WHAT} found (?P<found>\d+%) of the results, not (?P<before>\d+%)",
    "became_worse": rf"{_WHAT} has become worse",
    "tree_too_costly": r"the joins below the root of (?P<tree>\([\w ()]+\)) take too much",
    "takes": rf"(?:the exact join|{_WHAT}) takes CPU (?P<taken>[\d.e+-]+%) \(limit (?P<limit>[\d.e+-]+%)\)",
    "nothing_skipped": r"so no (?:more )?probes are skipped",
    "some_skipped": r"so (?P<share>\d+%) of the rows that enter the root probe",
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
    "not_costed_without_rates": (
        r"\(no cost estimate, because no rates are known; pass rates= \(in a script RATE\)\)"
    ),
    "not_costed_with_own_windows": r"\(no cost estimate for plans with composed windows\)",
    "total": r"total " + _USAGE.format("total") + r"(?:; limits: " + _USAGE.format("limit") + r")?",
    "no_plan_fits": r"why: no plan fits the limits, and this one exceeds them least "
    r"\((?P<excess>[\d.]+) times\); found by (?P<search>.+)",
    "least_cpu": r"why: there are no limits, and it takes the least CPU; found by (?P<search>.+)",
    "fits_the_limits": r"why: it fits the limits; found by (?P<search>.+)",
    "rival": r"the (?P<name>mjoin|bjtree) (?P<plan>\(.+\)) would take " + _USAGE.format("rival") + r": "
    r"(?P<fits>fits|does not fit)",
    "shed_by_hand": r"shedding by the given allowance:",
    "shed": r"shedding by (?P<way>.+) keeps about (?P<recall>\d+%) of the results",
    "probe_share": r"(?P<hop>.+): (?P<share>[\d.e-]+%) of arriving rows probe",
    "ages": r"(?P<hop>.+): probes partners aged (?P<ages>.+)",
    "dropped": r"(?P<stream>\w+): (?P<share>[\d.e-]+%) of rows dropped",
    "sample": r"sample: (?P<share>[\d.e-]+%) of rows probe everything",
}
# Values inside sentences that are words themselves.
VALUES = {
    "became known": "are known",
    "exhaustive search": "exhaustive",
    "does not fit": "too much",
    "time bound": "time_bound",
    "by slices of time": "by time",
    "that share all slices": "shared",
}


def hop_of(found: Any) -> tuple[str, str, str]:
    """Driver, partner and node of a hop, as an object, as the checkpoint has it, or as text."""
    if isinstance(found, str):
        text = HOP_TEXT.fullmatch(found)
        assert text is not None, f"{found!r} is no hop"
        return text["driver"], text["partner"], text["node"]
    parts = found if isinstance(found, dict) else vars_of(found, HOP_PARTS)
    driver, partner, node = (parts[theirs] for theirs in HOP_PARTS.values())
    return driver, partner, node


def vars_of(found: Any, words: Mapping[str, str]) -> dict[str, Any]:
    """Some attributes of an object."""
    return {theirs: getattr(found, theirs) for theirs in words.values()}


def decision_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """A decision with how often it was tried, of its file in the checkpoint."""
    return {**found[DECIDED], ATTEMPT: found[ATTEMPT]}


def tree_of(plan: Any) -> Any:
    """A plan object as the checkpoint has it."""
    from weir.codec import to_json

    return to_json(plan)


def stream_of(tree: Mapping[str, Any]) -> str | None:
    """The stream that a tree of the checkpoint is; None if it is a join."""
    return tree.get(STREAM_OF_LEAF)


def physical_of(query: Any, plan: Any) -> dict[str, Any]:
    """How each hop of a plan finds its partners, and what they must still fulfil; all hops by name."""
    from weir.expr.to_sql import to_sql
    from weir.kernel.physical_plan import compile_plan

    return {
        path.hop: {
            "access": ACCESS[type(path.access).__name__],
            "residual": [to_sql(expr) for expr in path.residual],
            "expensive": [to_sql(expr) for expr in path.expensive],
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
    return {"rates": known.rates, "selectivities": selectivities, "results_per_row": known.results_per_row}


def slices_of(query: Any) -> list[Any]:
    """The slices that a local query keeps, as a checkpoint would have them."""
    from weir.codec import to_json

    return [to_json(entry) for entry in query.manifest.entries]


def listen(act: Callable[[str, int], None]) -> Callable[[], None]:
    """Call `act` with the phase and the number of each batch on Spark; what comes back stops that."""
    from weir.runtime.batch_events import listen

    return listen(act)


def recommends(query: Any, plan: Any, allowance: Any, budget: Any, **more: Any) -> Any:
    """A controller for the simulated machine."""
    from weir.adapt.controller import Controller

    return Controller(query, plan, allowance, budget, **more)


def little_migration(monkeypatch: Any, steps: int) -> None:
    """So few steps in one batch that making another plan's states takes several."""
    from weir.kernel import plan_migration

    monkeypatch.setattr(plan_migration, "MIN_MIGRATION_STEPS", steps)
    monkeypatch.setattr(plan_migration, "MIGRATION_SHARE", 0.1)


def typical_costs(monkeypatch: Any) -> None:
    """Plans are weighed by typical costs, not by those of the machine that the tests run on."""
    from weir.adapt import planner

    monkeypatch.setattr(planner, "calibrate_costs", lambda: planner.TYPICAL)
