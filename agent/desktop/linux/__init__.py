"""What Linux desktops share under any display system: the session bus, standard folders, keymaps, and the session."""
