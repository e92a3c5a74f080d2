"""Gemini's computer use, in both of its vocabularies: that of 2.5 to 3.1 for browsers, and the one since 3.5."""
