"""Step-GUI (GELab-Zero): fields between tabs, and a rolling summary instead of a history."""
