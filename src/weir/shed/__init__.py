"""Shedding: decide which probes, ages or rows to skip when the CPU budget does not pay for all of them."""
