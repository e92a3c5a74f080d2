"""What all ways to a Wayland desktop share: the wire protocol, monitors, and the watch over the compositor."""
