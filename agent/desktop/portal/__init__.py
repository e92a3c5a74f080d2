"""The desktop of GNOME and KDE on Wayland, through the desktop portal and by what the person allows in its dialog."""
