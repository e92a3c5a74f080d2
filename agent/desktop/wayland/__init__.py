"""What all Wayland desktops share: the wire protocol, monitors, keyboard layouts and the watch on the compositor."""
