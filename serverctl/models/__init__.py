"""What a model weighs, per token and per image: computed from its own config.json, never from its name."""
