"""OpenAI's computer use: the tool `computer`, with several actions per call, and the older `computer_use_preview`."""
