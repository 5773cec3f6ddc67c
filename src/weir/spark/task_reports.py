"""Collect what tasks report to the driver: descriptors and counts as JSON, never data."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

# Not text, which Java would have to parse in every batch.
REPORT = StructType().add("report", "binary")


def collect_reports(reports: DataFrame) -> list[Any]:
    """Run the tasks that make the rows of a DataFrame, and return their reports."""
    return [json.loads(bytes(row.report)) for row in reports.collect()]
