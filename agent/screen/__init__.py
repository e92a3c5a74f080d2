"""How the agent sees the screen: capture, settling, OCR, the outline, image size and encoding."""
