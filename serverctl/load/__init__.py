"""The load of a server: its metrics, benches and batches that send requests, and advice to make it faster."""
