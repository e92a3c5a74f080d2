"""The two stages: the vision tower alone, and then everything."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from evaluation import quick_check
from losses import Gaze, Labels, batch_losses, cell_losses, labels_of
from networks import Helpers, Network
from PIL import Image
from scenes import random_size, scene
from words import CELL


@dataclass(frozen=True)
class Budget:
    """How long and how fast: minutes for the vision tower and for everything, the learning rate, the seed."""

    eyes: float
    minutes: float
    rate: float
    seed: int
    level: int  # where to begin: 0 is one shape an image, 3 is up to eight


def train_eyes(net: Network, helpers: Helpers, budget: Budget, shots: list[Image.Image]) -> None:
    """The vision tower alone, by the throw-away heads: three times as many images a minute as with the text."""
    rng = Random(budget.seed + 1)
    learn = [*net.model.model.visual.parameters(), *helpers.parameters()]
    optimiser = torch.optim.AdamW(learn, lr=1e-3, betas=(0.9, 0.97), weight_decay=0.02)
    began, step, mean = time.monotonic(), 0, 0.0
    while (spent := (time.monotonic() - began) / (budget.eyes * 60)) < 1:
        size = random_size(rng, 64, 110 if rng.random() < 0.8 else 300, CELL)
        count = max(2, round(900 * CELL**2 / (size[0] * size[1])))
        for group in optimiser.param_groups:
            group["lr"] = 1.5e-3 * min(1, (step + 1) / 60) * (1 - 0.6 * spent)
        scenes = [scene(rng, *size, shots, 2, 9) for _ in range(count)]
        labels: list[Labels] = [labels_of(shapes, *size) for _, shapes in scenes]
        loss = cell_losses(net, helpers, net.see([image for image, _ in scenes]), labels, size)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(learn, 1.0)
        optimiser.step()
        step += 1
        mean = float(loss.detach()) if step == 1 else 0.95 * mean + 0.05 * float(loss.detach())
        if step % 25 == 0:
            each = (time.monotonic() - began) / step
            print(f"eyes {step} {spent:.2f} {each:.2f}s/step {mean:.3f}", flush=True)


def train(net: Network, helpers: Helpers, budget: Budget, shots: list[Image.Image], out: Path) -> int:
    """Everything together; gives the number of steps."""
    rng, gaze = Random(budget.seed), Gaze(net)
    both = [*net.model.parameters(), *helpers.parameters()]
    groups = [
        {"params": [p for p in both if p.ndim >= 2], "weight_decay": 0.02},
        {"params": [p for p in both if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.97))
    began, step, since, level = time.monotonic(), 0, 0, budget.level
    mean: np.ndarray | None = None
    while (spent := (time.monotonic() - began) / (budget.minutes * 60)) < 1:
        # Small images first; larger ones join as the task is understood.
        draw = rng.random()
        small = spent < 0.12 or level < 2
        low, high = (64, 100) if small else (64, 160) if draw < 0.5 else (140, 420) if draw < 0.88 else (400, 1000)
        size = random_size(rng, low, high, CELL)
        cells = size[0] * size[1] // CELL**2
        rate = budget.rate * min(1, (step + 1) / 20) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * spent)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        parts = batch_losses(
            net, helpers, gaze, rng, size, shots, count=max(1, min(10, round(900 / cells))),
            questions=1 if cells < 200 else 2 if cells < 450 else 4,
            # One shape in each image, until its place is handed on; then more and more of them.
            most=(1, 2, 4, 8)[level], pixels=6.0 if level < 3 else 5.0 if spent < 0.6 else 3.5,
        )  # fmt: skip
        optimiser.zero_grad(set_to_none=True)
        parts.total().backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(both, 1.0)
        optimiser.step()
        now = np.array(parts.values())
        mean = now if mean is None else 0.92 * mean + 0.08 * now
        if level < 3 and step - since > 30 and (mean[1] < 1.2 or spent > (0.1, 0.17, 0.25)[level]):
            level, since = level + 1, step
            print(f"{step}: up to {(1, 2, 4, 8)[level]} shapes", flush=True)
        step += 1
        if step % 25 == 0:
            named = zip(("words", "numbers", "cells", "gaze", "handed"), mean, strict=True)
            each = (time.monotonic() - began) / step
            print(f"{step} {spent:.3f} {each:.2f}s/step", *(f"{n} {v:.3f}" for n, v in named), flush=True)
        if step % 100 == 0:
            net.model.eval()
            for test in ((320, 256), (640, 480)):
                print("   ", quick_check(net, Random(7), test, 16, shots), flush=True)
            net.model.train()
            net.save(out)
    net.save(out)
    return step
