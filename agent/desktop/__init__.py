"""What carries actions out: pyautogui, a dry run, the clipboard, and launching applications."""
