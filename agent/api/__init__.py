"""The Python door into runs. `mai_agent` is what is public of it."""
