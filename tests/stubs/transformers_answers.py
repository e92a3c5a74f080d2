"""What transformers answers to the very same requests: the reference for what a server makes of images.

    .venv-vllm/bin/python tests/stubs/transformers_answers.py MODEL < REQUESTS

REQUESTS is JSON: a list of {"messages": [...], "image": FILE}, messages as transformers' chat templates take them.
Prints a JSON list of answers, greedy and in float32.
"""

import json
import sys
from pathlib import Path
from typing import Any

from PIL import Image


def answers(folder: Path, requests: list[dict[str, Any]]) -> list[str]:
    """The answers, one after another."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    torch.set_num_threads(1)
    processor = AutoProcessor.from_pretrained(folder)
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    given = []
    for request in requests:
        prompt = processor.apply_chat_template(request["messages"], add_generation_prompt=True, tokenize=False)
        made = processor(text=[prompt], images=[Image.open(request["image"])], return_tensors="pt")
        out = model.generate(**made, max_new_tokens=80, do_sample=False)
        new = out[0, made["input_ids"].shape[1] :]
        given.append(processor.tokenizer.decode(new, skip_special_tokens=True))
    return given


if __name__ == "__main__":
    print(json.dumps(answers(Path(sys.argv[1]), json.load(sys.stdin))))
