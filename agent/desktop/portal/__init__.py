"""GNOME and KDE on Wayland: through the desktop portal, with the user's consent in its dialog."""
