"""Attacks on a query's files, processes and clocks, after which its output must be exact."""
