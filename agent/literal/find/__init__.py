"""From a name to the element that has it."""
