"""Experiments of the papers, benchmarks, a simulated ring of machines, and rival policies."""
