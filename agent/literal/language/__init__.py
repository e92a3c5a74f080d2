"""From a sentence to goals."""
