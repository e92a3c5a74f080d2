"""Log lines and an exit make a named failure; a failure makes the next plan, or a stop with an explanation."""
