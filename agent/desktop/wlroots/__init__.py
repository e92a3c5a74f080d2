"""Wayland compositors that allow capture and input through wlroots' protocols, such as sway."""
