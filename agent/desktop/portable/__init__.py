"""What mss, pyautogui and pyperclip do wherever they run: all of macOS and Windows, and the ground of X11."""
