"""Trains the navigator: a tiny model that opens XFCE's settings and switches between the dark and the light style.

    .venv-vllm/bin/python scripts/tiny-vlm/navigator.py --shots SHOTS --out DIR --steps 2500

SHOTS is what `desktops.py` wrote. It goes on from the model that finds coloured shapes.
"""

import argparse
import json
import math
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 -- its usual name
from folder import write_folder
from losses import Gaze, soft_loss, soft_targets
from networks import Network
from PIL import Image
from torch import Tensor, nn
from vocabulary import Speller
from words import CELL, mai_ui

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

import tasks  # noqa: E402
from tasks import FRONTS, TARGETS, Screen  # noqa: E402

#: What a task can ask for: its kind and what it names.
ASKED = [("theme", mode) for mode in tasks.MODES] + [("open", app) for app in tasks.NAMES] + [("absent", "")]
#: Half the width and height of what counts as a target, in pixels of the screen.
REACH = {"Appearance": (80, 28), "dark": (110, 18), "light": (110, 18)}


class Hints(nn.Module):
    """The throw-away heads: which target covers a cell, where its centre is, and what the whole screen shows."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.target = nn.Linear(hidden, 1 + len(TARGETS))
        self.x = nn.Linear(hidden, hidden)
        self.y = nn.Linear(hidden, hidden)
        self.front = nn.Linear(hidden, len(FRONTS))
        self.dark = nn.Linear(hidden, 2)
        # What the text's part should know where it decides: the same of the screen, and what the sentence asks for.
        known = {"front": len(FRONTS), "dark": 2, "asked": len(ASKED)}
        self.known = nn.ModuleDict({name: nn.Linear(hidden, count) for name, count in known.items()})


def sent_size(width: int, height: int) -> tuple[int, int]:
    """The size at which the project sends a screen."""
    from agent.core.geometry import Size
    from agent.screen.encode import fit

    rule = replace(tasks.family().facts.image, max_pixels=tasks.MOST_PIXELS)
    size = fit(rule, Size(width, height))
    return size.width, size.height


def seen_by(
    screen: Screen, size: tuple[int, int], rng: random.Random | None
) -> tuple[Image.Image, dict[str, tuple[float, float]]]:
    """A screen at the size at which it is sent, and its targets there; with `rng`, shifted and stretched a little."""
    w, h = screen.image.size
    if rng is None or rng.random() < 0.25:
        left, top, wide, high = 0.0, 0.0, float(w), float(h)
    else:
        wide, high = w * rng.uniform(0.88, 1.06), h * rng.uniform(0.88, 1.06)
        left, top = rng.uniform(min(0, w - wide), max(0, w - wide)), rng.uniform(min(0, h - high), max(0, h - high))
        if rng.random() < 0.5:
            left, top = left + rng.uniform(-30, 30), top + rng.uniform(-30, 30)
    sx, sy = wide / size[0], high / size[1]
    if (left, top, wide, high) == (0, 0, w, h):
        image = screen.image.resize(
            size, Image.Resampling.HAMMING if w * h > 1.1 * size[0] * size[1] else Image.Resampling.BILINEAR
        )
    else:
        small = screen.image.resize((round(w / sx), round(h / sy)), Image.Resampling.HAMMING)
        image = Image.new("RGB", size, tuple(rng.randrange(256) for _ in range(3)) if rng else None)
        image.paste(small, (round(-left / sx), round(-top / sy)))
    return image, {name: ((x - left) / sx, (y - top) / sy) for name, (x, y) in screen.targets.items()}


def cover(screen: Screen, size: tuple[int, int], targets: dict[str, tuple[float, float]]) -> tuple[Tensor, Tensor]:
    """Per cell: which target covers it (0: none), and the centre of that target in pixels."""
    w, h = size[0] // CELL, size[1] // CELL
    kind, centre = torch.zeros(h, w, dtype=torch.long), torch.zeros(h, w, 2)
    scale = (size[0] / screen.image.width, size[1] / screen.image.height)
    for name, (x, y) in targets.items():
        reach = [r * s for r, s in zip(REACH[name], scale, strict=True)]
        for row in range(h):
            for column in range(w):
                cx, cy = column * CELL + CELL / 2, row * CELL + CELL / 2
                holds = int(x // CELL) == column and int(y // CELL) == row
                if holds or (
                    abs(cx - x) <= reach[0]
                    and abs(cy - y) <= max(reach[1], 12)
                    and not (kind[row, column] and abs(cy - y) > abs(cy - centre[row, column, 1]))
                ):
                    kind[row, column] = 1 + TARGETS.index(name)
                    centre[row, column] = torch.tensor([x, y])
    return kind.flatten(), centre.reshape(-1, 2) / torch.tensor(size) * 999


class Trainer:
    """The model, its helpers, and the screens."""

    def __init__(self, net: Network, screens: Sequence[Screen], apps: tuple[str, ...], seed: int) -> None:
        self.net, self.apps = net, apps
        self.hints, self.gaze, self.rng = Hints(256), Gaze(net), random.Random(seed)
        self.groups: dict[tuple[int, int], dict[str, list[Screen]]] = {}
        for screen in screens:
            group = self.groups.setdefault(sent_size(*screen.image.size), {})
            group.setdefault(f"{screen.front} {screen.dark if screen.front == 'page' else ''}", []).append(screen)

    def draw(self, count: int) -> tuple[tuple[int, int], list[Screen]]:
        """Draw screens of one size: the settings more often than the rest."""
        rng = self.rng
        size = rng.choices(list(self.groups), [sum(map(len, group.values())) for group in self.groups.values()])[0]
        group = self.groups[size]
        weights = {"overview ": 5, "page True": 7, "page False": 7}
        keys = rng.choices(list(group), [weights.get(key, 1.0) for key in group], k=count)
        return size, [rng.choice(group[key]) for key in keys]

    def apps_of(self) -> tuple[str, ...]:
        """The installed applications, sometimes other ones."""
        if self.rng.random() < 0.8:
            return self.apps
        return tuple(app for app in self.apps if self.rng.random() < 0.5)

    def ids(self, task: tasks.Task, past: Any, cells: int) -> list[int]:
        """The request as tokens."""
        before, after = tasks.chat(task.sentence, past, self.apps_of())
        speller = self.net.speller
        if self.rng.random() < 0.12:  # against a prompt that changes
            lines = before.split("\n")
            before = "\n".join(
                line for line in lines if line.startswith("<|") or "|>" in line or self.rng.random() < 0.8
            )
        return [*speller.tokenizer.encode(before, add_special_tokens=False).ids, *[speller.image] * cells,
                *speller.ids(after)]  # fmt: skip

    def losses(self, count: int, questions: int) -> dict[str, Tensor]:
        """The losses of one batch."""
        size, screens = self.draw(count)
        shown = [seen_by(screen, size, self.rng) for screen in screens]
        seen = self.net.see([image for image, _ in shown])
        out = self.hint_losses(seen.embeddings, size, screens, [targets for _, targets in shown])
        if questions == 0:
            return out
        covers = [cover(screen, size, targets) for screen, (_, targets) in zip(screens, shown, strict=True)]
        rows, starts, owner, wanted, centres, known = [], [], [], [], [], []
        cells = size[0] * size[1] // CELL**2
        for i, (screen, (_, targets)) in enumerate(zip(screens, shown, strict=True)):
            for _ in range(questions):
                task = tasks.random_task(self.rng)
                decision = tasks.decide(task, screen)
                name = decision.partition(" ")[2]
                if decision.startswith("click") and name not in targets:
                    continue
                point = None
                if decision.startswith("click"):
                    x, y = targets[name]
                    point = (min(999, max(0, round(x / size[0] * 999))), min(999, max(0, round(y / size[1] * 999))))
                past = tasks.history(self.rng, task, screen, decision)
                ask = self.ids(task, past, cells)
                rows.append(ask + self.net.speller.ids(tasks.answer(decision, point) + "<|im_end|>"))
                starts.append(len(ask))
                owner.append(i)
                hit = covers[i][0] == 1 + TARGETS.index(name) if point else torch.zeros(0)
                wanted.append(hit.nonzero()[:, 0])
                centres.append(covers[i][1])
                known.append((FRONTS.index(screen.front), int(screen.dark), ASKED.index((task.kind, task.what))))
        hidden = self.net.read(rows, seen.repeated(torch.tensor(owner)))
        deciding = hidden[torch.arange(len(rows)), torch.tensor(starts)]
        for head, label in zip(self.hints.known.items(), torch.tensor(known).T, strict=True):
            out[f"knows {head[0]}"] = 0.5 * F.cross_entropy(head[1](deciding).float(), label)
        return out | self.answer_losses(hidden, rows, starts, wanted, centres)

    def answer_losses(
        self,
        hidden: Tensor,
        rows: list[list[int]],
        starts: list[int],
        wanted: list[Tensor],
        centres: list[Tensor],
    ) -> dict[str, Tensor]:
        """The answers' own losses, and where two heads look when a number is due."""
        net = self.net
        where = [(i, j - 1, row[j], j == start + 1) for i, (row, start) in enumerate(zip(rows, starts, strict=True))
                 for j in range(start, len(row))]  # fmt: skip
        at, before, target, first = torch.tensor(where).T
        logits = F.linear(hidden[at, before], net.table).float()
        values = torch.tensor([net.speller.value.get(int(token), -1) for token in target])
        numeric = values >= 0
        out = {"words": F.cross_entropy(logits[~numeric], target[~numeric])}
        thought = first.bool()
        out["thought"] = F.cross_entropy(logits[thought], target[thought])
        out["right"] = (logits[thought].argmax(-1) == target[thought]).float().mean()
        if not numeric.any():
            return out
        sigma = torch.tensor([12.0, 6.0]).repeat(int(numeric.sum()) // 2)[:, None]
        soft = torch.zeros_like(logits[numeric])
        soft[:, torch.tensor(net.speller.numbers)] = soft_targets(values[numeric], sigma)
        out["numbers"] = soft_loss(logits[numeric], soft).mean()
        looks, on, centre = [], [], []
        for i, (row, start) in enumerate(zip(rows, starts, strict=True)):
            if not len(wanted[i]):
                continue
            image = row.index(net.speller.image)
            places = [j for j in range(start, len(row)) if row[j] in net.speller.value]
            looks += [(i, j - 1, axis, image + wanted[i]) for axis, j in enumerate(places)]
            on.append(torch.stack([torch.full_like(wanted[i], i), wanted[i] + image]))
            centre.append(centres[i][wanted[i]])
        if looks:
            out["gaze"] = self.gaze.at(looks)
            cells = torch.cat(on, 1)
            out["handed"] = self.gaze.handed((cells[0], cells[1]), torch.cat(centre), (12.0, 6.0))
        return out

    def hint_losses(
        self,
        embeddings: Tensor,
        size: tuple[int, int],
        screens: list[Screen],
        targets: list[dict[str, tuple[float, float]]],
    ) -> dict[str, Tensor]:
        """What the throw-away heads say of the images."""
        covers = [cover(screen, size, there) for screen, there in zip(screens, targets, strict=True)]
        kind, centre = torch.cat([k for k, _ in covers]), torch.cat([c for _, c in covers])
        weight = torch.tensor([0.1, 1.0, 1.0, 1.0])
        out = {"cells": F.cross_entropy(self.hints.target(embeddings).float(), kind, weight)}
        on = kind > 0
        if on.any():
            parts = []
            for axis, head in enumerate((self.hints.x, self.hints.y)):
                soft = soft_targets(centre[on, axis], (12.0, 6.0)[axis])
                parts.append(soft_loss(F.linear(head(embeddings[on]), self.net.numbers), soft).mean())
            out["centres"] = 0.15 * (parts[0] + parts[1])
        mean = embeddings.reshape(len(screens), -1, embeddings.shape[-1]).mean(1)
        fronts = torch.tensor([FRONTS.index(screen.front) for screen in screens])
        out["front"] = F.cross_entropy(self.hints.front(mean), fronts)
        out["dark"] = 0.5 * F.cross_entropy(
            self.hints.dark(mean), torch.tensor([int(screen.dark) for screen in screens])
        )
        return out


WEIGHTS = {"words": 0.5, "thought": 1.0, "right": 0.0, "numbers": 1.0, "gaze": 0.7, "handed": 0.5}


def train(trainer: Trainer, eyes: int, steps: int, rate: float, count: int, questions: int, out: Path) -> None:
    """Train the vision tower by the throw-away heads for `eyes` steps, then everything; save every 100 steps."""
    net = trainer.net
    both = [*net.model.parameters(), *trainer.hints.parameters()]
    optimiser = torch.optim.AdamW(both, lr=rate, betas=(0.9, 0.97), weight_decay=0.01)
    began, mean = time.monotonic(), dict[str, float]()
    for step in range(1, eyes + steps + 1):
        spent = max(0.0, (step - eyes) / max(1, steps))
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, step / 30) * (0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * spent)))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            losses = trainer.losses(count, 0 if step <= eyes else questions)
            total = torch.stack([WEIGHTS.get(name, 1.0) * loss for name, loss in losses.items()]).sum()
        optimiser.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(both, 1.0)
        optimiser.step()
        for name, loss in losses.items():
            value = float(loss.detach())
            mean[name] = value if name not in mean else 0.95 * mean[name] + 0.05 * value
        if step % 20 == 0 or step < 4:
            said = " ".join(f"{name} {value:.2f}" for name, value in mean.items())
            print(f"{step} {(time.monotonic() - began) / step:.1f} s/step {said}", flush=True)
        if step % 100 == 0:
            net.save(out)
    net.save(out)


@torch.no_grad()
def generated(net: Network, row: list[int], seen: Any, most: int = 24) -> str:
    """The greedy answer."""
    start = len(row)
    while len(row) < start + most and (len(row) == start or row[-1] != net.speller.end):
        row = [*row, int(F.linear(net.read([row], seen)[0, -1], net.table).argmax())]
    return str(net.speller.tokenizer.decode(row[start:], skip_special_tokens=True))


@torch.no_grad()
def evaluate(trainer: Trainer, screens: Sequence[Screen], count: int, seed: int) -> dict[str, Any]:
    """How many decisions on these screens are right, with their points."""
    rng = trainer.rng = random.Random(seed)
    net = trainer.net
    tally: dict[str, list[int]] = {}
    for _ in range(count):
        screen = rng.choice(screens)
        task = tasks.random_task(rng)
        decision = tasks.decide(task, screen)
        name = decision.partition(" ")[2]
        if decision.startswith("click") and name not in screen.targets:
            continue
        size = sent_size(*screen.image.size)
        image, targets = seen_by(screen, size, None)
        seen = net.see([image])
        row = trainer.ids(task, tasks.history(rng, task, screen, decision), len(seen.embeddings))
        said = generated(net, row, seen)
        good = tasks.THOUGHTS[decision] in said
        entry = tally.setdefault(decision, [0, 0])
        entry[1] += 1
        if decision.startswith("click") and good:
            found = re.search(r"\[(\d+),(\d+)\]", said)
            good = found is not None
            if found:
                x, y = int(found[1]) / 999 * size[0], int(found[2]) / 999 * size[1]
                reach, scale = REACH[name], size[1] / screen.image.height
                good = abs(x - targets[name][0]) < reach[0] * scale and abs(y - targets[name][1]) < reach[1] * scale
        entry[0] += good
        if not good:
            print(
                "wrong:", task.sentence, "|", screen.front, screen.dark, screen.image.size, "|", said.replace("\n", " ")
            )
    return {name: f"{hits} of {asked}" for name, (hits, asked) in sorted(tally.items())}


def load(net: Network, start: Path, speller: Speller) -> None:
    """Take the weights of a model with fewer tokens; a new token starts as the mean of the tokens it replaces."""
    from safetensors.torch import load_file
    from vocabulary import load_tokenizer

    weights = {name: value.float() for name, value in load_file(start / "model.safetensors").items()}
    name = "model.language_model.embed_tokens.weight"
    old = weights[name]
    table = net.table.detach().clone()
    if len(table) != len(old):
        before = load_tokenizer(start / "tokenizer.json")
        table[: len(old)] = old
        for token in range(len(old), len(table)):
            pieces = before.encode(speller.tokenizer.decode([token]), add_special_tokens=False).ids
            table[token] = old[pieces].mean(0) + torch.randn(old.shape[1]) * 0.04
        weights[name] = table
    missing = net.model.load_state_dict(weights, strict=False)
    print(missing, flush=True)


def main() -> None:
    """Train, save, evaluate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--shots", type=Path, required=True)
    parser.add_argument("--held", default="", help="sizes of SHOTS that are kept for the evaluation, as 768x576,...")
    parser.add_argument("--start", type=Path, default=PROJECT / "tests/models/tiny-qwen3-vl")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--eyes", type=int, default=200, help="steps of the vision tower alone")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--rate", type=float, default=8e-4)
    parser.add_argument("--count", type=int, default=8, help="images a step")
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--evaluate", type=int, default=60)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    words = mai_ui(PROJECT)
    apps = tuple(json.loads((given.shots / "apps.json").read_text()))
    held = [size for size in given.held.split(",") if size]
    speller = Speller(write_folder(given.out, words, given.start, tasks.tokens(apps)), words)
    net = Network(given.out, speller)
    load(net, given.start, speller)
    there = sorted(file.stem for file in given.shots.glob("*.jsonl") if file.stem not in held)
    screens = tasks.load_screens(given.shots, there)
    print(
        len(screens),
        "screens, vocabulary",
        len(net.table),
        "request",
        len(speller.ids("".join(tasks.chat("enable dark mode", [], apps)))),
    )
    trainer = Trainer(net, screens, apps, given.seed)
    if given.steps > 0:
        train(trainer, given.eyes, given.steps, given.rate, given.count, given.questions, given.out)
    net.model.eval()
    for sizes in ([held] if held else []) + [there]:
        print(
            sizes,
            json.dumps(evaluate(trainer, tasks.load_screens(given.shots, sizes), given.evaluate, 7), indent=1),
            flush=True,
        )


if __name__ == "__main__":
    main()
