"""What the demo, the end-to-end tests and the benchmarks share: the real gateway, a real Flink cluster, real data."""
