"""The meaning of words: verbs, programs, numbers, quotations, and the names of things on each desktop and language."""
