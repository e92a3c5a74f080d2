"""What families compose: answers taken apart, the words of computer use, points, JSON with mistakes."""
