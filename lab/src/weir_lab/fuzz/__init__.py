"""Fuzzing: random inputs, expressions and joins, whose answers are compared with Spark's own."""
