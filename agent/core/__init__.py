"""The types that all other packages share: actions, geometry, keys, changes and notes. Knows no model or desktop."""
