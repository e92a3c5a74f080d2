"""What a person and the stop switch do to a run: steering, stops that end every wait, threads of their own."""
