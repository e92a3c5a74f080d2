"""What changed on a Linux desktop while a run lasted (settings, files, windows), and how a change is undone."""
