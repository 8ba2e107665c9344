"""The main job on real input: see `make demo`."""
