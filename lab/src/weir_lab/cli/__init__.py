"""The command line `weir-lab`: the experiments of the papers and the benchmarks, one command each."""
