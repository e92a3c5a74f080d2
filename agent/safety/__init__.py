"""What the model may do without asking, decided outside the model; and the stop switch."""
