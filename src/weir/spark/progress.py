"""The progress of a batch: Spark's own, with a section of the join's."""

from __future__ import annotations

import json
import uuid
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress


class JoinProgress(StreamingQueryProgress):
    """Spark's progress, a dict with attributes and `.json`, and one more entry and attribute, `weir`.

    Unlike Spark's, its ids are text inside the dict, so that `json.dumps` accepts it; as attributes they are
    UUIDs, as Spark's are.
    """

    @property
    def id(self) -> uuid.UUID:
        """A unique id of the query, kept across restarts."""
        return uuid.UUID(self["id"])

    @property
    def runId(self) -> uuid.UUID:  # noqa: N802 - Spark's name
        """An id of this start of the query."""
        return uuid.UUID(self["runId"])

    @property
    def weir(self) -> dict[str, Any] | None:
        """What the join did in the batch; None for a batch of which this process knows nothing."""
        section: dict[str, Any] | None = self["weir"]
        return section


def add_section(progress: StreamingQueryProgress, section: dict[str, Any] | None) -> JoinProgress:
    """Return a progress of Spark's with the join's section."""
    shown = {**json.loads(progress.json), "weir": section}
    extended = JoinProgress.fromJson(shown)
    assert isinstance(extended, JoinProgress)
    extended.update(id=shown["id"], runId=shown["runId"], weir=section)
    return extended
