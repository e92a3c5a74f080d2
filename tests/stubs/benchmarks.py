"""Tiny made-up benchmarks in the layouts of their publishers."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

#: The target of every sample, on a picture of 200x100: left 20, top 10, right 60, bottom 30.
SIZE = (200, 100)


def picture(path: Path) -> None:
    """A white picture, in folders that it makes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", SIZE, "white").save(path)


def written(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")


def _screenspot(folder: Path, suffix: str, images: str) -> None:
    for platform in ("desktop", "mobile", "web"):
        rows = [
            {"img_filename": f"{platform}.png", "bbox": [20, 10, 40, 20], "instruction": f"the {kind}",
             "data_type": kind, "data_source": "made up"}
            for kind in ("text", "icon")
        ]  # fmt: skip
        written(folder / f"screenspot_{platform}{suffix}.json", rows)
        picture(folder / images / f"{platform}.png")


def _pro(folder: Path) -> None:
    for app in ("word_macos", "vscode_macos"):
        row = {"img_filename": f"{app}/one.png", "bbox": [20, 10, 60, 30], "instruction": "the gear", "id": f"{app}_0",
               "application": app, "platform": "macos", "img_size": list(SIZE), "ui_type": "icon",
               "group": "Office" if app == "word_macos" else "Dev"}  # fmt: skip
        written(folder / "annotations" / f"{app}.json", [row])
        picture(folder / "images" / app / "one.png")


def osworld_rows(**more: str) -> list[dict[str, Any]]:
    """A box, a polygon (a triangle within the box's place) and a target that is not there."""
    targets = [("bbox", [20, 10, 40, 20]), ("polygon", [20, 10, 60, 10, 60, 30]), ("refusal", [-1, -1, -1, -1])]
    return [
        {"id": f"A-{number}", "image_path": "a.png", "image_size": list(SIZE), "instruction": f"the {kind}",
         "box_type": kind, "box_coordinates": target, "GUI_types": ["Icon"], **more}
        for number, (kind, target) in enumerate(targets)
    ]  # fmt: skip


def _osworld(folder: Path, name: str, **more: str) -> None:
    written(folder / f"{name}.json", osworld_rows(**more))
    picture(folder / "images" / "a.png")


def _mmbench(folder: Path) -> None:
    row = {"bbox": [0.1, 0.1, 0.3, 0.3], "image_size": list(SIZE), "image_path": "m.png", "platform": "os_mac",
           "application": "mail", "grounding_type": "basic", "instruction": "the gear",
           "data_type": "icon"}  # fmt: skip
    written(folder / "L2_annotations.json", [row, {**row, "grounding_type": "advanced"}])
    picture(folder / "offline_images" / "os_mac" / "m.png")


def _ui_vision(folder: Path) -> None:
    for subset in ("basic", "functional", "spatial"):
        row = {"image_path": "element_grounding/u.png", "image_size": list(SIZE), "prompt_to_evaluate": "the gear",
               "bbox": [20.0, 10.0, 60.0, 30.0], "platform": "GIMP", "category": "Button",
               "element_type": "icon"}  # fmt: skip
        written(folder / f"element_grounding_{subset}.json", [row] * (2 if subset == "spatial" else 1))
    picture(folder / "images" / "element_grounding" / "u.png")


@dataclass(frozen=True)
class MadeUp:
    """How a benchmark is made, and what is in it."""

    make: Callable[[Path], None]
    ids: list[str]
    groups: dict[str, str]  # of the first sample


_SIX = ["desktop{}_0", "desktop{}_1", "mobile{}_0", "mobile{}_1", "web{}_0", "web{}_1"]
MADE_UP = {
    "screenspot": MadeUp(
        lambda folder: _screenspot(folder, "", "screenspot_imgs"),
        ["screenspot_" + name.format("") for name in _SIX], {"platform": "desktop", "type": "text"},
    ),
    "screenspot-v2": MadeUp(
        lambda folder: _screenspot(folder, "_v2", "screenspotv2_image"),
        ["screenspot_" + name.format("_v2") for name in _SIX], {"platform": "desktop", "type": "text"},
    ),
    "screenspot-pro": MadeUp(_pro, ["vscode_macos_0", "word_macos_0"], {"group": "Dev", "type": "icon"}),
    "osworld-g": MadeUp(lambda folder: _osworld(folder, "OSWorld-G"), ["A-0", "A-1", "A-2"], {"target": "bbox"}),
    "osworld-g-refined": MadeUp(
        lambda folder: _osworld(folder, "OSWorld-G_refined"), ["A-0", "A-1", "A-2"], {"target": "bbox"}
    ),
    "mmbench-gui-l2": MadeUp(
        _mmbench, ["L2_annotations_0", "L2_annotations_1"], {"platform": "os_mac", "level": "basic"}
    ),
    "ui-vision": MadeUp(
        _ui_vision,
        [f"element_grounding_{name}" for name in ("basic_0", "functional_0", "spatial_0", "spatial_1")],
        {"subset": "basic"},
    ),
    "deskbench": MadeUp(
        lambda folder: _osworld(folder, "DeskBench", asks="name", language="de", theme="dark"),
        ["A-0", "A-1", "A-2"], {"asks": "name", "language": "de", "theme": "dark"},
    ),
}  # fmt: skip
