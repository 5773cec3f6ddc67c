"""Qualified plans (Zhu et al. 2010): which join tree fits both CPU and memory, and how fast it is found."""
