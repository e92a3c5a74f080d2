"""Building blocks of families: answer parts, the vocabulary of computer use, points, JSON with mistakes."""
