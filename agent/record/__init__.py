"""Run bundles on disk: written from the first step on, read back, replayed."""
