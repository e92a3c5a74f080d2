"""Rules of a policy file: their form, how they are read, and how they match an action."""
