"""Is it true? The papers' experiments, on a virtual clock."""
