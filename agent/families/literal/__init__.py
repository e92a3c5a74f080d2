"""The model family of the built-in literal engine, with a request and answer format of our own."""
