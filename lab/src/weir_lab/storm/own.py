"""Spark's own way to ask for it: stream-stream joins, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_lab.storm.streams import ON, SELECT, STREAMS, WINDOW


def chained(frames: Mapping[str, Any], interval: float) -> Any:
    """The same join: each next stream with what was found of those before it."""
    width = f"INTERVAL {WINDOW * interval} SECONDS"
    prepared = {
        name: frame.withWatermark("ts", "0 seconds").selectExpr(
            *(f"{column} AS {name}_{column}" for column in ("ts", "id", "k", "x", "y"))
        )
        for name, frame in frames.items()
    }
    found, bound = prepared[STREAMS[0]], [STREAMS[0]]
    for name in STREAMS[1:]:
        conditions = [
            _flat(part)
            for part in ON.split(" AND ")
            if _reads(part) <= {*bound, name} and name in _reads(part)
        ]
        # Spark wants a key in common with what is bound; all keys are equal.
        conditions = [f"{bound[0]}_k = {name}_k", *(c for c in conditions if "_k" not in c)]
        conditions += [_near(one, name, width) for one in bound]
        # One event-time column is allowed in the next join: the others go by a number and back.
        kept = [f"{stream}_{column}" for stream in bound for column in ("ts", "id", "k", "x", "y")]
        kept += [f"timestamp_micros(unix_micros({name}_ts)) AS {name}_ts"]
        kept += [f"{name}_{column}" for column in ("id", "k", "x", "y")]
        found = found.sparkSession.sql(
            f"SELECT {', '.join(kept)} FROM {{found}} JOIN {{other}} ON {' AND '.join(conditions)}",
            found=found,
            other=prepared[name],
        )
        bound.append(name)
    return found.selectExpr(*_flat(SELECT).split(", "))


def _near(one: str, other: str, width: str) -> str:
    return f"{one}_ts > {other}_ts - {width} AND {one}_ts < {other}_ts + {width}"


def _flat(text: str) -> str:
    for name in STREAMS:
        text = text.replace(f"{name}.", f"{name}_")
    return text


def _reads(text: str) -> set[str]:
    return {name for name in STREAMS if f"{name}." in text}
