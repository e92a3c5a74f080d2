"""The desktop of an X server: all that the project says in X11's words is in this folder."""
