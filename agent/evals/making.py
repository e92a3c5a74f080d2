"""Makes DeskBench: pictures of throw-away desktops, and instructions with targets from the accessibility tree.

It is written in OSWorld-G's layout, with more keys.
"""

import json
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

from agent.core.actions import Click, Move
from agent.core.geometry import DesktopPoint, Region, Size
from agent.desktop.factory import open_desktop
from agent.desktop.protocol.windows import WindowId, Windows
from agent.evals.targets import Question, Target, is_absent, questions_of, targets_of
from agent.run.observing.outliner import Eye
from agent.safety.stop import StopSwitch
from agent.sandbox.desktop import Sandbox, SandboxSpec, start_sandbox
from agent.screen.capture import Frame
from agent.screen.ocr import reading_languages
from agent.screen.outline import Outline
from agent.screen.settle import SettleRule, settle
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import cannot_write, write_file

T = TypeVar("T")

#: Seconds for a program to show its window: the slowest here, GNOME's settings, takes 4 on two busy cores.
_TIMEOUT = 30.0
_POLL = 0.05
#: A new window is drawn in several steps.
_STILL = SettleRule(quiet=0.6, cap=8.0)
#: A window may report elements late: GTK 4, while a page fades in.
_MOST_LOOKS = 5


class Stage:
    """The windows of a running sandbox (X11); a context manager."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.box = sandbox
        self.desktop = open_desktop(StopSwitch(), None, sandbox.environ)
        windows = self.desktop.open_windows()
        if windows is None:
            raise EnvironmentLacksError("The throw-away desktop does not list its windows.")
        self.manager: Windows = windows
        self._eye = Eye(self.desktop, reading_languages(sandbox.environ)[0], ours=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with closing(self._eye), closing(self.manager), closing(self.desktop.hand):
            pass

    def open(self, command: Sequence[str]) -> WindowId:
        """Start a program, and return its first new window. Raises EnvironmentLacksError: none appears."""
        before = set(self.windows())
        try:
            self.box.start(*command)
        except OSError as error:
            raise EnvironmentLacksError(f"{command[0]} cannot be started ({error.strerror}).") from error
        new = self._wait(lambda: next((one for one in self.windows() if one not in before), None))
        if new is None:
            raise EnvironmentLacksError(f"{command[0]} shows no window.", "Is the machine very busy?")
        return new

    def windows(self) -> list[WindowId]:
        """Return the ordinary windows, the lowest first."""
        return [one for one in self.manager.stacking() if self.manager.is_ordinary(one)]

    def place(self, window: WindowId, region: Region | None) -> None:
        """Bring a window to the front; with a region, move and resize it first, as far as it allows."""
        if region is not None:
            self.manager.place(window, region)
        self.manager.activate(window)
        self._wait(lambda: (active := self.manager.active()) is not None and active.id == window)

    def clear(self) -> None:
        """Close all windows."""
        self._wait(lambda: all(not self.manager.dismiss(one) for one in self.windows()))

    def paint(self, commands: Sequence[Sequence[str]]) -> None:
        """Run the commands that set a theme."""
        for command in commands:
            self.box.run(*command)

    def look(self) -> tuple[Frame, Outline]:
        """Return the screen, once it is still, and its elements, once two looks agree. Raises EnvironmentLacksError."""
        settle(self.desktop.screen, _STILL)
        frame, outline = self._eye.look()
        for _ in range(_MOST_LOOKS):
            time.sleep(_STILL.quiet)
            before, (frame, outline) = outline, self._eye.look()
            if outline.elements == before.elements:
                break
        return frame, outline

    def targets(self, outline: Outline, frame_words: Collection[str] = ()) -> list[Target]:
        """Return the elements of a look that can be asked for."""
        layers = [layer.outer for layer in self.manager.layers()]  # windows with their frames, panels and open menus
        return targets_of(outline, self.manager.layers_at, layers, frame_words)

    def _wait(self, found: Callable[[], T | None]) -> T | None:
        end = time.monotonic() + _TIMEOUT
        while not (result := found()) and time.monotonic() < end:
            time.sleep(_POLL)
        return result


# The benchmark

#: The share of instructions whose target is not there: as in OSWorld-G (54 of 564).
_ABSENT = 0.1
#: Windows of a picture, and how often a menu or list is opened.
_WINDOWS, _OPENED = (1, 2, 2, 3), 0.25
_OPENING = ("menu", "list")
#: Pixels that panels take at the top and bottom.
_PANELS = 30
#: A time of day, as clocks show it. It would make two sets differ.
_TIME = re.compile(r"\d:\d\d")
#: Most pictures in a row without a question.
_MOST_POOR = 10


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """The parameters of a set. Equal parameters give an equal set if the same programs are installed."""

    number: int
    seed: int
    sizes: tuple[Size, ...]
    themes: tuple[str, ...]
    locales: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture, and what is asked about it."""

    image: str
    size: Size
    theme: str
    outline: Outline
    names: tuple[tuple[str, str], ...]  # role and name of what could be asked for in the windows
    asked: tuple[tuple[Question, Target], ...]


def themes() -> list[str]:
    """Return the names of the themes."""
    return list(load_config("deskbench.toml")["themes"])


def words_for(locale: str) -> Mapping[str, Any]:
    """Return the words of instructions in a locale's language. Raises UsageError: there are none."""
    languages = load_config("deskbench.toml")["languages"]
    language = locale.partition("_")[0]
    if language not in languages:
        raise UsageError(
            f"There are no words for instructions in {locale}.", f"There are some in {', '.join(languages)}."
        )
    words: Mapping[str, Any] = languages[language]
    return words


def make(folder: Path, wishes: BenchmarkOptions, tell: Callable[[str], None]) -> int:
    """Make a benchmark in a folder without `images`. Return how many samples it has.

    Raises UsageError: there are no words in a language, or the folder holds pictures. MaiError: a sandbox cannot be
    started, or the folder cannot be written to.
    """
    for locale in wishes.locales:
        words_for(locale)
    try:
        (folder / "images").mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(f"{folder} holds pictures already.", "Name a new folder.") from error
    except OSError as error:
        raise cannot_write(folder / "images", error) from error
    places = [(size, locale) for size in wishes.sizes for locale in wishes.locales]
    rows: list[dict[str, Any]] = []
    for index, (size, locale) in enumerate(places):
        wanted, absent = (
            number * (index + 1) // len(places) - number * index // len(places)
            for number in (wishes.number, round(_ABSENT * wishes.number))
        )
        if wanted:
            rows += _of_desktop(folder, wishes, size, locale, wanted, absent, index, tell)
            # Write after each desktop, so that a later failure loses nothing.
            write_file(folder / "DeskBench.json", json.dumps(rows, ensure_ascii=False, indent=1) + "\n", 0o666)
            tell(f"{len(rows)} of {wishes.number}")
    return len(rows)


def _of_desktop(
    folder: Path,
    wishes: BenchmarkOptions,
    size: Size,
    locale: str,
    wanted: int,
    absent: int,
    first: int,
    tell: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Return the samples of one desktop; `absent` of them have no target. `first` is the number of its first theme."""
    config, scenes, rows = load_config("deskbench.toml"), list[Scene](), list[dict[str, Any]]()
    left, poor = wanted - absent, 0
    most = left if not absent else max(1, left // 2)
    spec = SandboxSpec(size=size, session=config["session"], locale=locale)
    with closing(start_sandbox(spec, tell)) as sandbox, Stage(sandbox) as stage:
        stage.paint(config["set_up"])
        while left > 0 or (absent and len(scenes) < 2):  # absent targets are elements of other pictures
            number = len(scenes)
            path = folder / "images" / f"{size}-{locale}-{number:03}.png"
            theme = wishes.themes[(first + number) % len(wishes.themes)]
            # Each picture has its own random numbers: if one differs, the others stay the same.
            rng = _chance(wishes.seed, size, locale, number)
            scene = _scene(stage, path, theme, size, words_for(locale)["frame"], min(left, most), rng)
            scenes.append(scene)
            left -= len(scene.asked)
            if left <= 0 and (not absent or len(scenes) > 1):  # the remaining samples have no target
                missing = wanted - sum(len(one.asked) for one in scenes)
                rows = list(_rows(scenes, missing, locale, f"{wishes.seed} {size} {locale} absent"))
                left = wanted - len(rows)
            poor = 0 if scene.asked or left <= 0 else poor + 1
            if poor > _MOST_POOR:
                raise EnvironmentLacksError(
                    "The programs on the throw-away desktop show nothing that can be asked for.",
                    "Is at-spi2-core installed?",
                )
    return rows


def _chance(*named: object) -> random.Random:
    return random.Random(" ".join(map(str, named)))  # noqa: S311 -- the same set each time, not a secret


def _scene(
    stage: Stage, path: Path, theme: str, size: Size, frame_words: Collection[str], most: int, rng: random.Random
) -> Scene:
    """Arrange windows, and choose what is asked about them."""
    config = load_config("deskbench.toml")
    stage.paint(config["themes"][theme])
    programs = [command for command in config["programs"] if shutil.which(command[0])]
    for command in rng.sample(programs, min(len(programs), rng.choice(_WINDOWS))):
        place = _somewhere(size, rng)
        with suppress(EnvironmentLacksError):  # a program that shows no window is missed in this picture alone
            stage.place(stage.open(command), place)
    stage.desktop.hand.perform(Move(DesktopPoint(0, size.height - 100)))  # nothing is there that shows a tooltip
    frame, outline = stage.look()
    found = stage.targets(outline, frame_words)
    seed, opens = str(rng.random()), rng.random() < _OPENED
    opening = [target for target in found if target.role in _OPENING]
    if opening and opens:
        stage.desktop.hand.perform(Click(_shuffled(opening, seed)[0].element.box.middle))
        frame, outline = stage.look()
        found = stage.targets(outline, frame_words)
    frame.image.save(path)
    questions = tuple(_chosen(found, outline, min(most, config["samples"]), seed))
    stage.clear()
    # Not those in the panels: a window's button may come or go late.
    titles = {window.title for window in outline.windows}
    names = tuple((target.role, target.name) for target in found if target.name and target.element.window in titles)
    return Scene(path.name, size, theme, outline, names, questions)


def _somewhere(size: Size, rng: random.Random) -> Region:
    width, height = (int(side * rng.uniform(0.45, 0.9)) for side in (size.width, size.height - 2 * _PANELS))
    left, top = rng.randint(0, size.width - width), rng.randint(_PANELS, size.height - _PANELS - height)
    return Region(left, top, width, height)


def _chance_of(target: Target, seed: str) -> random.Random:
    """Return the random numbers of one element. Changes of other elements, such as a clock, do not affect them."""
    return _chance(seed, target.role, target.name, target.element.window)


def _shuffled(found: Sequence[Target], seed: str) -> list[Target]:
    return sorted(found, key=lambda target: _chance_of(target, seed).random())


def _chosen(found: Sequence[Target], outline: Outline, most: int, seed: str) -> Iterator[tuple[Question, Target]]:
    """Yield targets with varied roles and questions; at most one in the panels, which every picture shows."""
    titles, panels = {window.title for window in outline.windows}, 0
    left = [target for target in _shuffled(found, seed) if not _TIME.search(target.name)]
    roles, kinds, chosen = Counter[str](), Counter[str](), 0
    while left and chosen < most:
        target = min(left, key=lambda one: roles[one.role])
        left.remove(target)
        of_panel = target.element.window not in titles
        if of_panel and panels:
            continue
        asked = questions_of(target, outline, _chance_of(target, seed))
        question = min(asked, key=lambda one: kinds[one.asks], default=None)
        if question is not None:
            panels += of_panel
            roles[target.role] += 1
            kinds[question.asks] += 1
            chosen += 1
            yield question, target


def _rows(scenes: Sequence[Scene], absent: int, locale: str, seed: str) -> Iterator[dict[str, Any]]:
    missing = list(islice(_missing(scenes, seed), absent))
    for scene in scenes:
        questions = [*scene.asked, *((question, None) for of, question in missing if of is scene)]
        for number, (question, target) in enumerate(questions):
            yield _row(scene, question, target, locale, f"{scene.image.removesuffix('.png')}-{number}")


def _missing(scenes: Sequence[Scene], seed: str) -> Iterator[tuple[Scene, Question]]:
    """Yield questions about elements that only other pictures show. Each name has its own random numbers."""
    names = {pair: _chance(seed, *pair) for scene in scenes for pair in scene.names}
    for (role, name), rng in sorted(names.items(), key=lambda one: one[1].random()):
        scene = next((one for one in rng.sample(scenes, len(scenes)) if is_absent(name, one.outline)), None)
        if scene is not None:
            yield scene, Question("absent", rng.choice(("name", "role")), role, name)


def _row(scene: Scene, question: Question, target: Target | None, locale: str, identifier: str) -> dict[str, Any]:
    words = words_for(locale)
    role = words["roles"].get(question.role, "")
    row: dict[str, Any] = {
        "id": identifier,
        "image_path": scene.image,
        "image_size": [scene.size.width, scene.size.height],
        "instruction": words[question.words].format(role=role, name=question.name, window=question.window),
        "box_type": "refusal",
        "box_coordinates": [-1, -1, -1, -1],
        "GUI_types": [],
        "asks": question.asks,
        "language": locale.partition("_")[0],
        "theme": scene.theme,
    }
    if target is None:
        return row
    element = target.element
    box = [element.box.left, element.box.top, element.box.width, element.box.height]
    more = {"box_type": "bbox", "box_coordinates": box, "GUI_types": ["Text" if element.source == "both" else "Icon"]}
    return row | more | {"role": element.role, "name": element.name, "window": element.window}
