"""Budgets, recall and freshness held against a known truth: what `weir-lab regret` runs."""
