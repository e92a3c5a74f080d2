"""Bundles made by hand, for tests of reports: plausible steps with real pictures."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from agent.record.read import Bundle, read_bundle
from agent.screen.encode import encode
from foundation.foreign_text import json_text

CLICK = {"type": "click", "point": [80.0, 45.0], "button": "left", "count": 1}
META: dict[str, Any] = {
    "format": 3, "id": "20261121-080405-open-settings-7b81", "instruction": "open settings", "version": "0.1.0",
    "started": "2026-11-21T08:04:05.540+00:00", "outcome": "done", "status": 0, "message": "The task is done.",
    "warnings": [], "engine": "vllm", "model": "MAI-UI-8B", "family": "mai-ui", "dry_run": False, "approve": "risky",
    "sandbox": False, "seconds": 12.3, "tokens": {"prompt": 200, "completion": 40, "cached": 0},
}  # fmt: skip


def a_step(number: int, **changes: Any) -> dict[str, Any]:
    step: dict[str, Any] = {
        "step": number, "at": number * 1.5, "before": [], "screen": "x",
        "image": {"file": f"screens/{number:04d}.png", "width": 160, "height": 90, "tokens": 475},
        "viewport": {"left": 0, "top": 0, "width": 160, "height": 90, "captured_width": 160, "captured_height": 90},
        "answers": [{"raw": f"answer {number}", "failure": None}], "thought": f"Thought {number}.",
        "call": {"name": "mobile_use", "arguments": {"action": "click"}},
        "action": {"type": "click", "point": [499.0, 499.0], "button": "left", "count": 1}, "grid": [999, 999],
        "target": CLICK, "approval": None, "executed": True, "dry_run": False, "detail": "click at 80,45",
        "error": None, "changed": True, "note": None, "reply": None,
        "tokens": {"prompt": 100, "completion": 20, "cached": 60},
        "milliseconds": {"capture": 10.0, "fit": 5.0, "encode": 5.0, "model": 800.0, "ttft": 300.0, "act": 30.0,
                         "settle": 500.0},
    }  # fmt: skip
    step |= changes
    if "target" in changes and "detail" not in changes:
        step["detail"] = ""
    if "actions" not in step:
        own = (
            "call",
            "action",
            "grid",
            "target",
            "approval",
            "executed",
            "dry_run",
            "detail",
            "error",
            "aim",
            "elements",
        )
        told = {name: step[name] for name in (*own, "target_image", "fate") if name in step}
        fate = "done" if told["executed"] else "dry run" if told["dry_run"] else "broken off"
        step["actions"] = [{"fate": fate} | told] if step["target"] is not None else []
    return {"images": [step["image"]] if step["image"] else []} | step


def noise(width: int = 160, height: int = 90, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8))


def plain(number: int, width: int = 160, height: int = 90) -> Image.Image:
    return Image.new("RGB", (width, height), (number * 37 % 256, number * 91 % 256, 120))


def a_bundle(
    path: Path, steps: list[dict[str, Any]], images: list[Image.Image] | None = None, /, **meta: Any
) -> Bundle:
    (path / "screens").mkdir(parents=True)
    (path / "run.json").write_text(json_text(META | {"steps": len(steps)} | meta))
    (path / "steps.jsonl").write_text("".join(json_text(step) + "\n" for step in steps))
    pictures = [plain(number) for number in range(1, len(steps) + 1)] if images is None else images
    for number, image in enumerate(pictures, 1):
        (path / f"screens/{number:04d}.png").write_bytes(encode(image, "png").data)
    return read_bundle(path)
