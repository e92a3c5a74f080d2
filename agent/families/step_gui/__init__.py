"""Step-GUI (GELab-Zero): fields between tabs, and a rolling summary for a history."""
