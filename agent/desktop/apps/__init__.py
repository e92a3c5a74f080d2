"""Installed applications: finds them by the words people use, starts them detached and waits for their windows."""
