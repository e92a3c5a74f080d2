"""Desktops through mss, pyautogui and pyperclip: macOS and Windows, and the base of the X11 desktop."""
