"""Benchmarks: our side and the side to compare with, alternately in one run, as ratios. See `make bench`."""
