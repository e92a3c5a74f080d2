"""The commands about models: asking one, reading its answers, measuring it."""
