"""The built-in literal engine as a family: it is asked and answers in a form of our own."""
