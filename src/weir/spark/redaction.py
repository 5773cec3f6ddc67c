"""Secrets in options: Spark's own patterns tell which they are.

These are `spark.redaction.regex` and `spark.sql.redaction.options.regex`. People see Spark's replacement in
place of a secret, and a record keeps a hash of it, by which a change is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from weir.errors import QueryError
from weir.spark.java_errors import JAVA_ERRORS, reason_of

_ROUNDS = 100_000  # some hundredths of a second: passwords are short, and files are copied
_HIDDEN = "*********(redacted)"  # as Spark writes it


def redact_options(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return options with what Spark writes in place of each secret."""
    jvm: Any = spark._jvm
    given = dict(options)
    redacted = spark._jsparkSession.sessionState().conf().redactOptions(jvm.PythonUtils.toScalaMap(given))
    return {name: redacted.apply(name) for name in given}


def hash_secrets(
    spark: SparkSession, options: Mapping[str, str], salt: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Split options into those to record as they are, and the hashes of secret ones."""
    redacted = redact_options(spark, options)
    plain = {name: value for name, value in options.items() if redacted[name] == value}
    return plain, {name: _hash(options[name], salt) for name in redacted if name not in plain}


def is_same_secret(value: str, recorded: str, salt: str) -> bool:
    """True if a value is the one of which a hash was recorded."""
    return _hash(value, salt) == recorded


def hide_secrets(spark: SparkSession, options: Mapping[str, str], text: str) -> str:
    """Return a text without the secrets among some options."""
    redacted = redact_options(spark, options)
    for name, value in options.items():
        if value and redacted[name] != value:
            text = text.replace(value, _HIDDEN)
    return text


@contextmanager
def keep_secrets(spark: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
    """Raise errors of Spark that tell a secret without it, in one line."""
    try:
        yield
    except JAVA_ERRORS as error:
        text = str(error)
        if hide_secrets(spark, options, text) == text:
            raise
        raise QueryError(hide_secrets(spark, options, reason_of(error))) from None


def _hash(secret: str, salt: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", secret.encode(), salt.encode(), _ROUNDS).hex()
