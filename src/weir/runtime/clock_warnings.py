"""Warn of streams that hold all state because nothing arrives, and of those whose clock is wrong."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np

from weir.runtime.watermark import Holder

_LOG = logging.getLogger("weir")
# How long nothing may arrive before it is worth a word (µs).
_SILENT = 600_000_000


class ClockWarnings:
    """Warns once of each stream after a start of the query, for each reason."""

    def __init__(self) -> None:
        self._silent: set[str] = set()
        self._ahead: set[str] = set()

    def check_silence(self, holder: Holder | None, now: int | None) -> None:
        """Warn if the stream that holds the watermark has been silent for ten minutes."""
        if holder is None or holder.since is None or now is None or holder.stream in self._silent:
            return
        if now - holder.since >= _SILENT:
            self._silent.add(holder.stream)
            _LOG.warning(
                "stream '%s' has brought no row with a usable time since %s UTC, so it holds the watermark, "
                "and the state of all streams is kept; pass idle= to let the others go on without a silent "
                "stream",
                holder.stream,
                format_time(holder.since),
            )

    def check_ahead(self, ahead: Mapping[str, int], latest: Mapping[str, int]) -> None:
        """Warn of rows that were dropped because they are ahead of the `latest` time of their stream."""
        for name, rows in ahead.items():
            if rows and name not in self._ahead:
                self._ahead.add(name)
                _LOG.warning(
                    "stream '%s' has brought %d row%s from after %s UTC; such rows are dropped, because "
                    "their clock must be wrong; pass a longer ahead=, or None, if the times are right",
                    name,
                    rows,
                    "s" * (rows != 1),
                    format_time(latest[name]),
                )


def format_time(micros: int) -> str:
    """Format a time of any year, also one that a datetime cannot have."""
    return str(np.datetime64(micros // 1_000_000, "s")).replace("T", " ")
