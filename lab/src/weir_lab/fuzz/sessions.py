"""The sessions in which Spark answers: three time zones, with ANSI mode and without."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from weir.expr.session import Session

ZONES = ("UTC", "America/New_York", "Asia/Kolkata")
SESSIONS = tuple(Session(zone, ansi) for zone in ZONES for ansi in (True, False))
_SETTINGS = {
    # A common part of two expressions would be evaluated outside of TryEval.
    "spark.sql.subexpressionElimination.enabled": "false",
    # Compiling hundreds of expressions takes longer than interpreting them on few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # The optimiser would evaluate filters of small tables itself, and skip others if no row is left.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    # Tables are small: a task costs more than its rows.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}


@cache
def open_session(spark: Any, session: Session) -> Any:
    """Return Spark's session with a time zone and mode; its settings suit many small questions."""
    # Spark's client logs every expression that Spark refuses, with its stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", session.time_zone)
    own.conf.set("spark.sql.ansi.enabled", str(session.ansi).lower())
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    return own
