"""What the Qwen-VL models and those trained on them share: the `computer_use` function, its prompts and its answers."""
