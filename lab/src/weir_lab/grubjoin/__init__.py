"""The experiments of 002: window harvesting beside random dropping."""
