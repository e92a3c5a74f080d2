"""OpenAI's computer use: the tool `computer`, with several actions a call, and before it `computer_use_preview`."""
