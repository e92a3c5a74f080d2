"""Goals of several stages: folders, files, texts, sums."""
