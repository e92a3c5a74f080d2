"""Latency and throughput of a running server, measured with what a GUI agent sends: screenshots and a long prompt."""
