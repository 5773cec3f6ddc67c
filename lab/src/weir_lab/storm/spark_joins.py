"""The same query as a chain of Spark's own stream-stream joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_lab.storm.streams import ON, SELECT, STREAMS, WINDOW


def chain_joins(frames: Mapping[str, Any], interval: float) -> Any:
    """Chain the joins: each stream with the results of those before it."""
    width = f"INTERVAL {WINDOW * interval} SECONDS"
    prepared = {
        name: frame.withWatermark("ts", "0 seconds").selectExpr(
            *(f"{column} AS {name}_{column}" for column in ("ts", "id", "k", "x", "y"))
        )
        for name, frame in frames.items()
    }
    joined, bound = prepared[STREAMS[0]], [STREAMS[0]]
    for name in STREAMS[1:]:
        conditions = [
            _flat(part)
            for part in ON.split(" AND ")
            if _reads(part) <= {*bound, name} and name in _reads(part)
        ]
        # Spark wants a key in common with what is bound; all keys are equal.
        conditions = [f"{bound[0]}_k = {name}_k", *(c for c in conditions if "_k" not in c)]
        conditions += [_near(earlier, name, width) for earlier in bound]
        # One event-time column is allowed in the next join: the others go by a number and back.
        kept = [f"{stream}_{column}" for stream in bound for column in ("ts", "id", "k", "x", "y")]
        kept += [f"timestamp_micros(unix_micros({name}_ts)) AS {name}_ts"]
        kept += [f"{name}_{column}" for column in ("id", "k", "x", "y")]
        joined = joined.sparkSession.sql(
            f"SELECT {', '.join(kept)} FROM {{joined}} JOIN {{other}} ON {' AND '.join(conditions)}",
            joined=joined,
            other=prepared[name],
        )
        bound.append(name)
    return joined.selectExpr(*_flat(SELECT).split(", "))


def _near(left: str, right: str, width: str) -> str:
    return f"{left}_ts > {right}_ts - {width} AND {left}_ts < {right}_ts + {width}"


def _flat(text: str) -> str:
    for name in STREAMS:
        text = text.replace(f"{name}.", f"{name}_")
    return text


def _reads(text: str) -> set[str]:
    return {name for name in STREAMS if f"{name}." in text}
