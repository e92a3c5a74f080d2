"""How good a model is on images that it was not trained on, and whether its inputs are what a server makes of them."""

import math
import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 -- its usual name
import words
from inputs import patches, positions
from networks import Network
from PIL import Image
from scenes import ASKS, Shape, scene
from words import CELL

#: At most 1000 image tokens, or a few more.
SIZES = ((320, 256), (640, 480), (800, 608), (1024, 768), (1120, 700))


def fitted(size: tuple[int, int]) -> tuple[int, int]:
    """The size, to whole cells."""
    return round(size[0] / CELL) * CELL, round(size[1] / CELL) * CELL


@torch.no_grad()
def answer(net: Network, image: Image.Image, ask: str, most: int = 60) -> str:
    """The greedy answer (without a cache: the model is tiny)."""
    seen = net.see([image])
    row = net.speller.question(ask, len(seen.embeddings))
    start = len(row)
    while len(row) < start + most and row[-1] != net.speller.end:
        row.append(int(F.linear(net.read([row], seen)[0, -1], net.table).argmax()))
    return str(net.speller.tokenizer.decode(row[start:], skip_special_tokens=True))


@torch.no_grad()
def quick_check(net: Network, rng: Random, size: tuple[int, int], count: int, shots: list[Image.Image]) -> str:
    """Hits and errors with the words given: only the numbers are the model's own. Errors in halves of the shape."""
    found = []
    size = fitted(size)
    for _ in range(count):
        image, shapes = scene(rng, *size, shots)
        seen = net.see([image])
        s = rng.choice(shapes)
        ask = rng.choice(ASKS).format(c=s.colour, s=s.shape)
        row = net.speller.question(ask, len(seen.embeddings))
        row = row + net.speller.ids(words.answer(s.colour, s.shape, 7, 7))
        at = [j for j in range(len(row)) if row[j] == net.speller.numbers[7]][-2:]
        values = []
        for place in at:
            hidden = net.read([row[:place]], seen)
            values.append(int(F.linear(hidden[0, -1], net.numbers).argmax()))
            row[place] = net.speller.numbers[values[-1]]
        found.append(max(_away(values, s, size)) / s.r)
    errors = np.array(found)
    return f"{size[0]}x{size[1]} hit {np.mean(errors < 1):.2f} median {np.median(errors):.2f}r"


def _away(values: list[int], shape: Shape, size: tuple[int, int]) -> tuple[float, float]:
    """How far the point is from the centre, in pixels."""
    x, y = (value / 1000 * side for value, side in zip(values, size, strict=True))
    return abs(x - shape.x), abs(y - shape.y)


@torch.no_grad()
def evaluate(net: Network, seed: int, count: int, shots: list[Image.Image]) -> dict[str, Any]:
    """Held-out images, the whole answer generated: hits and errors by size."""
    report: dict[str, Any] = {}
    for wanted in SIZES:
        size = fitted(wanted)
        rng = Random(seed)
        errors: list[float] = []
        hits = 0
        for _ in range(count):
            image, shapes = scene(rng, *size, shots)
            s = rng.choice(shapes)
            ask = rng.choice(ASKS).format(c=s.colour, s=s.shape)
            text = answer(net, image, ask)
            found = re.search(r'"coordinate": \[(\d+), ?(\d+)\]', text)
            if found:
                dx, dy = _away([int(found[1]), int(found[2])], s, size)
                errors.append(math.hypot(dx, dy))
                hits += max(dx, dy) <= s.r
        report[f"{size[0]}x{size[1]}"] = {
            "images": count,
            "within_shape": round(hits / count, 3),
            "median_error_px": round(float(np.median(errors)), 1) if errors else None,
            "mean_error_px": round(float(np.mean(errors)), 1) if errors else None,
            "no_answer": count - len(errors),
        }
    return report


def check_processor(folder: Path, net: Network) -> None:
    """Sees that the inputs made here are those that transformers' processor makes. Raises AssertionError."""
    from transformers import AutoProcessor

    speller = net.speller
    processor = AutoProcessor.from_pretrained(folder)  # type: ignore[no-untyped-call]
    image, _ = scene(Random(1), 13 * CELL, 9 * CELL, [])
    text, place = {"type": "text", "text": "click the red square\n"}, {"type": "image"}
    messages = [
        {"role": "system", "content": [{"type": "text", "text": speller.words.system}]},
        {"role": "user", "content": [text, place]},
    ]
    prompt = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    made = processor(text=[prompt], images=[image], return_tensors="pt")
    pixels, grid = patches([image])
    row = speller.question("click the red square", 117)
    assert made["input_ids"][0].tolist() == row, (made["input_ids"][0].tolist()[:60], row[:60])
    assert torch.equal(made["image_grid_thw"], grid)
    assert (made["pixel_values"] - pixels).abs().max() < 1e-4
    kinds = (made["input_ids"] == speller.image).int()
    want, _ = net.model.model.get_rope_index(made["input_ids"], kinds, grid)
    assert torch.equal(want[:, 0], positions(row, speller.image, grid.tolist()))
    print(f"inputs agree with transformers' processor; {len(row) - 117} text tokens", flush=True)
