"""Qwen3-VL (Qwen, Apache-2.0)."""
