"""Tasks on throw-away desktops: runs whose outcome is judged by the desktop's own state."""
