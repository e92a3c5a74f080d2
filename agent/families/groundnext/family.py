"""GroundNext as a `Family`."""

from agent.families.grounder import Grounder


def create() -> Grounder:
    """The family, as the registry asks for it."""
    return Grounder("groundnext")
