"""EvoCUA (Meituan, Apache-2.0)."""
