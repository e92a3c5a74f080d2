"""The desktop of an X server. All code that speaks X11 is in this folder."""
