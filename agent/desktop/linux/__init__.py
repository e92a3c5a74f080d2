"""What all Linux desktops share, whatever the display system: session bus, XDG folders, keymaps and the session."""
