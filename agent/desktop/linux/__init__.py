"""What Linux desktops have in common under any display system: their stores of settings, and files."""
