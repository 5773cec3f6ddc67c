"""The experiments of 004: joins whose state is spread over a ring of machines."""
