"""What the screen shows at a step: the screenshot and the outline."""
