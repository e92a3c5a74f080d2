"""What the Qwen-VL models and their descendants share: the `computer_use` function, its prompts and its answers."""
