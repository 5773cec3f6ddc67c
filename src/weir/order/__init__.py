"""Driver order: which stream's rows of a batch are processed first."""
