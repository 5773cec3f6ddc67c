"""Driver input selection (Valsomatzis and Gounaris 2013): which stream of a batch goes first."""
