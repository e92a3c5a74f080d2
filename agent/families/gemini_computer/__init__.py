"""Gemini's computer use, with both vocabularies: the one of 2.5 to 3.1 for browsers, and the one since 3.5."""
