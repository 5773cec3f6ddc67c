"""Paper 003: which stream of a batch goes first, and what that is worth."""
