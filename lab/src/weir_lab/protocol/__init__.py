"""A model of how batches are committed, searched through all interleavings, kills and power cuts."""
