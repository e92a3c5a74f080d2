"""Anthropic's computer use: the computer tools of 2024-10-22 to 2025-11-24, and the toolset of 2026-08-01."""
