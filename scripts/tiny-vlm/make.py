"""Trains, from nothing and on a processor, a tiny vision-language model that finds coloured shapes in screenshots.

    .venv-vllm/bin/python scripts/tiny-vlm/make.py --out DIR [--backgrounds DIR]

DIR becomes a model folder that vLLM serves as it is, in bfloat16. `--backgrounds` names a folder in which PNG
screenshots are looked for to be used as backgrounds; without it all are drawn. README.md says what makes it
learnable so fast.
"""

import argparse
import json
import random
from pathlib import Path

import torch
from evaluation import check_processor, evaluate
from folder import write_folder, write_json
from networks import Helpers, Network
from PIL import Image
from training import Budget, train, train_eyes
from vocabulary import Speller
from words import mai_ui

PROJECT = Path(__file__).resolve().parents[2]


def load_shots(folder: Path | None) -> tuple[list[Image.Image], list[Image.Image]]:
    """Screenshots for backgrounds; a sixth of them is kept for evaluation."""
    files = sorted(folder.rglob("*.png")) if folder else []
    random.Random(0).shuffle(files)
    shots = [Image.open(file).convert("RGB") for file in files[:60]]
    keep = max(1, len(shots) // 6) if shots else 0
    return shots[keep:], shots[:keep]


def main() -> None:
    """Makes the folder, trains, saves, evaluates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--backgrounds", type=Path)
    parser.add_argument("--eyes", type=float, default=6, help="minutes for the vision tower alone, before the rest")
    parser.add_argument("--minutes", type=float, default=20, help="minutes for everything together, after that")
    parser.add_argument("--start", type=Path, help="go on from this model folder's weights")
    parser.add_argument(
        "--level", type=int, default=0, help="where to begin: 0 is one shape an image, 3 is up to eight"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rate", type=float, default=1.4e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--evaluate", type=int, default=60, help="held-out images per size")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    words = mai_ui(PROJECT)
    speller = Speller(write_folder(given.out, words, given.start), words)
    net, helpers = Network(given.out, speller), Helpers(256)
    check_processor(given.out, net)
    if given.start:
        net.load(given.start)
    shots, held = load_shots(given.backgrounds)
    size = sum(p.numel() for p in net.model.parameters()) / 1e6
    print(f"{size:.2f} M parameters, {len(shots)} screenshots", flush=True)
    budget = Budget(given.eyes, given.minutes, given.rate, given.seed, given.level)
    if given.eyes > 0:
        train_eyes(net, helpers, budget, shots)
    if given.minutes > 0:
        print(train(net, helpers, budget, shots, given.out), "steps")
    net.model.eval()
    if given.evaluate:
        report = evaluate(net, 4242, given.evaluate, held)
        write_json(given.out / "evaluation.json", report)
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
