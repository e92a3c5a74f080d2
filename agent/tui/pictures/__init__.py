"""Pictures in a terminal: what it can draw, and how a screenshot becomes characters or sixels."""
