"""What the screen shows at a step."""
