"""Paper 001: which join tree fits both CPU and memory, and how fast it is found."""
