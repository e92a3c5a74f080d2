"""The memory of a model's weights, tokens and images: computed from its config.json, never from its name."""
