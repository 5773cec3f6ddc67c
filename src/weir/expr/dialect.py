"""The sqlglot dialect that expressions are parsed in: Spark's, but functions keep the names as written."""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.spark import Spark


class UntranslatedSpark(Spark):
    """Spark's dialect that does not translate functions: `year(d)` stays a call of `year`."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens; a doubled quote is an escaped quote, as since Spark 4."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        """Spark's grammar with an empty table of translated functions."""

        FUNCTIONS: ClassVar[dict[str, object]] = {}
