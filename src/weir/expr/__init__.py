"""Expressions: parsed from Spark SQL, bound and typed, evaluated on Arrow arrays with Spark's meaning."""
