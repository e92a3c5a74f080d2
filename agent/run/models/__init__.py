"""The models that can decide: how each is asked, with which history and limits."""
