"""Benchmarks: ratios of two things that are measured side by side in the same run."""
