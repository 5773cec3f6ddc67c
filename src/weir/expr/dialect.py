"""Spark's SQL as sqlglot reads it, but with functions under the names that were written."""

from __future__ import annotations

from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark


class SparkText(Spark):
    """Spark's dialect without translation of functions: `year(d)` stays a call of `year`."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens; a doubled quote stands for itself, as since Spark 4."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        """Spark's grammar; every function keeps its own name."""

        FUNCTIONS: ClassVar[dict[str, object]] = {}


def reparse(node: exp.Expression) -> Any:
    """The same node with functions under Spark's names, whoever parsed it."""
    return sqlglot.parse_one(node.sql(dialect="spark"), dialect=SparkText)
