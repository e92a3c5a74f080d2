"""What a server has to do: its own numbers, benches and batches that load it, and what would make it quicker."""
