"""Every supported Flink and Java on real clusters: see `make matrix`."""
