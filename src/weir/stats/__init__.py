"""What was counted: hops, batches, join graphs, unit costs and lags."""
