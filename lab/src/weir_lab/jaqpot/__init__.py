"""Paper 000: the most results from too few probes, and every one of them fresh."""
