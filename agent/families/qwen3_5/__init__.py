"""Qwen3.5, 3.6 and 3.8 (Qwen, Apache-2.0), which see without a suffix to their names."""
