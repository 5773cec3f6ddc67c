"""JAQPOT (Mukherji et al. 2011): the most results from too few probes, and every one of them fresh."""
