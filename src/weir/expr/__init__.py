"""Expressions of Spark SQL: bind and type them, and evaluate them on Arrow arrays with Spark's semantics."""
