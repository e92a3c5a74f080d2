"""What fills the terminal: a run, the recorded runs, two runs side by side, help."""
