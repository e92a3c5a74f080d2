"""One module for each kind of hardware: the settings of one candidate plan on it."""
