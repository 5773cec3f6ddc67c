"""The experiments of Gedik et al. 2007: window harvesting beside random dropping."""
