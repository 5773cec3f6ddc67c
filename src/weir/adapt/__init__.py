"""Adaptation: statistics of the running query, and the plan and the shedding chosen from them."""
