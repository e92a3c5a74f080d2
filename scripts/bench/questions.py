"""How often the shipped policy asks in ordinary tasks, and which risky actions it lets through.

    python scripts/bench/questions.py [--list] [--runs FOLDER]

Reads the actions of `scripts/bench/questions`: ordinary tasks as they go, risky actions by what they lead to, and those
that were written before the rules and kept apart, or after them. Prints, for `--approve risky`: questions per ordinary
task, and every risky action that is not asked about. `--runs` adds the recorded runs of a folder as ordinary tasks,
with the elements that were hit and the words that are read around the targets; `--list` prints every question.
"""

import argparse
import os
import re
import statistics
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from agent.core.actions import (
    Action,
    Click,
    Drag,
    HoldKeys,
    LongPress,
    OpenApp,
    PressKeys,
    Scroll,
    TypeText,
    points_of,
)
from agent.core.geometry import DesktopPoint, Region
from agent.core.keys import chord
from agent.desktop.apps.catalogue import App
from agent.desktop.apps.linux import installed_apps
from agent.record.records import read_action
from agent.record.step_record import StepRecord
from agent.safety.commands import after_prompt
from agent.safety.input_history import InputHistory
from agent.safety.policy import Grants, Policy
from agent.safety.sentence import Sentence
from agent.safety.situation import Fact, Place, Situation
from agent.safety.targets import is_browser, takes_text
from agent.safety.text import spelled
from agent.screen.ocr import Ocr
from agent.screen.outline import Element
from foundation.configs import load_config

DATA = Path(__file__).parent / "questions"
_POINT = DesktopPoint(400, 400)
_WINDOW = Region(100, 100, 900, 600)


@dataclass(frozen=True, slots=True)
class Step:
    """One action as the data tells it, and where it goes."""

    action: Action[DesktopPoint]
    seen: Situation
    window: str
    words: str  # what it is, for a person
    stands: str | None = None  # what stands in the focused field, if the data tells
    default: Element | None = None  # the button that Enter presses in this window


@dataclass(frozen=True, slots=True)
class Task:
    """Actions one after the other; of a risky one the last is what must be asked about."""

    name: str
    steps: tuple[Step, ...]
    there_before: frozenset[str] = frozenset()
    sentence: str = ""  # what the person asked for


@dataclass(slots=True)
class Asked:
    """What came of a task."""

    questions: list[str] = field(default_factory=list)
    last: bool = False  # the last action was asked about


def ask(policy: Policy, task: Task) -> Asked:
    """Judge a task's actions in order; a person allows everything, and for good where that is offered."""
    history, grants, asked, sentence = InputHistory(task.there_before), Grants(), Asked(), Sentence(task.sentence)
    fields = Fields()
    for step in task.steps:
        seen = history.judge(step.action, fields.read(step), step.window)
        if step.default is not None:  # the tree tells which button Enter presses
            press = Click(_POINT)
            default = history.judge(press, Situation(under=seen.focused, elements=(step.default,)), step.window)
            default = replace(default, facts=default.facts | sentence.facts(press, default))
            history.judge(step.action, fields.read(step), step.window)
            seen = replace(seen, default=default)
        question = policy.question(step.action, replace(seen, facts=seen.facts | sentence.facts(step.action, seen)))
        asked.last = question is not None
        if question is not None and not grants.allow(question):
            asked.questions.append(f"{step.words}: {question.reason}")
            if question.scope:
                grants.add(question)
        history.did(step.action)
        fields.did(step)
        sentence.did(step.action, seen)
    return asked


#: Terminals whose text the accessibility tree tells: those of VTE.
_TOLD_TERMINALS = re.compile(r"(?i)^(\S*\.)?(xfce4-|gnome-|mate-|lx)terminal\S*|^(\S*\.)?(tilix|kgx|ptyxis|console)$")


@dataclass(slots=True)
class Fields:
    """Stands in for the accessibility tree: what a field holds after what was done to it."""

    where: tuple[str, ...] = ()
    text: str = ""
    caret: int = 0

    def read(self, step: Step) -> Situation:
        """The situation with the text of the focused field, where the tree would tell it."""
        focus, place = step.seen.elements[-1:], step.seen.focused
        terminal = place is not None and is_terminal(place.app)
        if place is None and step.window == (*self.where, "")[0] and self.text.strip():
            return replace(step.seen, fields=(self.text,))
        if place is None or any(not takes_text(one) or one.role == "password text" for one in focus):
            return step.seen
        if terminal and not _TOLD_TERMINALS.search(place.app):
            return step.seen
        where = (step.window, *(one.name for one in focus))
        if where != self.where or step.stands is not None:
            self.where, self.text = where, step.stands or ""
            if terminal and step.stands is not None:
                self.text = self.text[after_prompt(self.text) or 0 :]
            self.caret = len(self.text)
        before, after = self.text[: self.caret], self.text[self.caret :]
        entered = re.split(r"[\r\n]", spelled(step.action))
        sent = before + entered[0] + after if len(entered) > 1 else None
        return replace(step.seen, typed=before, rest=after, read=True, sent=sent)

    def did(self, step: Step) -> None:
        """Do to the field what the action does."""
        keys = step.action.keys if isinstance(step.action, PressKeys) else ()
        entered = spelled(step.action)
        if not isinstance(step.action, PressKeys | TypeText | HoldKeys) or keys in (("tab",), ("escape",)):
            self.where = ()
        elif keys in (("left",), ("right",), ("home",), ("end",)):
            to = {"left": self.caret - 1, "right": self.caret + 1, "home": 0}.get(keys[0], len(self.text))
            self.caret = max(0, min(to, len(self.text)))
        elif keys == ("backspace",):
            self.text = self.text[: max(0, self.caret - 1)] + self.text[self.caret :]
            self.caret = max(0, self.caret - 1)
        elif keys == ("delete",):
            self.text = self.text[: self.caret] + self.text[self.caret + 1 :]
        elif entered:
            self.text = self.text[: self.caret] + entered + self.text[self.caret :]
            self.caret += len(entered)
            multi = any("multi line" in one.states for one in step.seen.elements)
            if not multi and (lines := self.text.splitlines(keepends=True)) and "\n" in entered:
                self.text = "" if lines[-1].endswith("\n") else lines[-1]
                self.caret = len(self.text)
        elif "backspace" in keys or {"ctrl", "a"} <= set(keys):  # a word or a line, or all with what comes next
            self.text, self.caret = "", 0


@cache
def _terminals() -> tuple[re.Pattern[str], ...]:
    groups = load_config("policies/default.toml")["groups"]
    return tuple(re.compile(one, re.IGNORECASE) for one in groups["terminals"])


def is_terminal(app: str) -> bool:
    """Whether a window is a terminal's."""
    return any(one.search(app) for one in _terminals())


def step_of(told: Mapping[str, Any] | str, where: Mapping[str, Any]) -> Step:
    """One action of the data; what it does not say of its window is as `where` says."""
    told = {**where, **({"keys": told} if isinstance(told, str) else told)}
    place = _place(str(told.get("in", "")), dialog=bool(told.get("dialog")), window=str(told.get("window", "")))
    if place is not None and "site" in told:
        place = replace(place, site=str(told["site"]))
    app = place.app if place else ""
    action, caption = _action_of(told)
    focus = {"editable": told.get("focus_editable"), **told}
    elements = (_element(told["focus"], focus),) if "focus" in told else ()
    if not isinstance(action, TypeText | PressKeys | HoldKeys):
        role = told.get("role")
        elements = (_element(f"{role} {told.get('name', caption)}", told),) if role else ()
    facts: set[Fact] = {"not the system's"} if told.get("foreign") else set()
    facts |= {"may be a program"} if told.get("program") else set()
    # What no element tells and has words on it may be a button, as pictures show it; `plain` is none.
    facts |= {"drawn as a button"} if told.get("drawn") or not ("role" in told or told.get("plain")) else set()
    opens = None
    if isinstance(action, OpenApp):
        starts = str(told.get("starts", action.name))
        opens = (action.name, str(told.get("id", starts)), starts)
    typing = isinstance(action, TypeText | PressKeys | HoldKeys)
    seen = Situation(
        focused=place if typing else None,
        under=None if typing else place,
        origin=_place(str(told["from"])) if "from" in told else None,
        words=caption if not typing and not told.get("unread") else "",
        elements=elements,
        opens=opens,
        asked=str(told.get("asked", "")),
        facts=frozenset(facts),
    )
    stands = str(told["stands"]) if "stands" in told else None
    default = _element(f"push button {told['default']}", {}) if "default" in told else None
    return Step(action, seen, str(told.get("window", app)), _words(told), stands, default)


def _place(told: str, *, dialog: bool = False, window: str = "") -> Place | None:
    """The window that "application · title" stands for. A dialog is a window of its own, a page's title its site."""
    app, _, title = told.partition(" · ")
    place = Place(app, title, _WINDOW, dialog, window=title if dialog else window or app)
    site = title if is_browser(place) and not dialog else ""
    return replace(place, site=site) if app else None


def _words(told: Mapping[str, Any]) -> str:
    kind = next((key for key in _KINDS if key in told), "?")
    return f"{kind} {told.get(kind)!r} in {told.get('in', '?')}"


#: The kinds of actions in the data: what each is, by its text and the point that it goes to.
_KINDS: dict[str, Callable[[str, DesktopPoint], Action[DesktopPoint]]] = {
    "click": lambda _, at: Click(at),
    "double_click": lambda _, at: Click(at, count=2),
    "right_click": lambda _, at: Click(at, "right"),
    "middle_click": lambda _, at: Click(at, "middle"),
    "hold_at": lambda _, at: LongPress(at),
    "drag": lambda _, at: Drag(DesktopPoint(300, 300), at),
    "scroll": lambda _, at: Scroll(at, 0, 3),
    "type": lambda text, _: TypeText(text),
    "press": lambda keys, _: PressKeys(chord(keys)),
    "keys": lambda keys, _: PressKeys(chord(keys)),
    "hold": lambda keys, _: HoldKeys(chord(keys), 1.0),
    "open": lambda name, _: OpenApp(name),
}


def _action_of(told: Mapping[str, Any]) -> tuple[Action[DesktopPoint], str]:
    """The action, and what is written where it points."""
    kind = next(key for key in _KINDS if key in told)
    value = str(told[kind])
    action = _KINDS[kind](value, DesktopPoint(*told["at"]) if "at" in told else _POINT)
    return action, value if points_of(action) else ""


def _element(told: str, more: Mapping[str, Any]) -> Element:
    """An element by its role, of one or two words, and its name."""
    role = next((one for one in _ROLES if told == one or told.startswith(f"{one} ")), told.split(maxsplit=1)[0])
    tall = role in ("text", "document text") and not more.get("one_line")
    box = Region(300, 300, 400, 300 if tall else 30)
    states = frozenset(
        {"multi line", "editable"} if tall else {"focused", *({"editable"} if more.get("editable") else ())}
    ) | frozenset(more.get("states", ()))
    return Element(1, role, told[len(role) :].strip(), box, more.get("href"), states)


_ROLES = ("push button", "toggle button", "check box", "check menu item", "radio button", "radio menu item",
          "menu item", "password text", "spin button", "combo box", "list item", "table cell", "table row", "page tab",
          "document text", "document web", "tree item", "desktop icon", "list box", "layered pane",
          "row header")  # fmt: skip


def risky(path: Path) -> Iterator[tuple[str, Task]]:
    """Each risky action of a file, with what it leads to."""
    for told in (one for each in tomllib.loads(path.read_text("utf-8"))["actions"] for one in _each(each)):
        where = {key: told[key] for key in ("in", "focus", "dialog", "window") if key in told}
        before = [*told.get("first", ())]
        if "after_click" in told:
            before.append({"click": told["after_click"]})
        steps = [step_of(one, where) for one in before]
        last = step_of(
            {key: value for key, value in told.items() if key not in ("first", "after_click", "why", "sentence")}, {}
        )
        windows = frozenset(step.window for step in (*steps, last))
        yield str(told["why"]), Task(last.words, (*steps, last), windows, str(told.get("sentence", "")))


def _each(told: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The actions that a line of the data stands for: one for each caption, text or chord that it lists."""
    kind = next(key for key in _KINDS if key in told)
    values = told[kind] if isinstance(told[kind], list) else [told[kind]]
    yield from ({**told, kind: value} for value in values)


def ordinary(path: Path) -> Iterator[Task]:
    """The ordinary tasks of a file."""
    for told in tomllib.loads(path.read_text("utf-8"))["tasks"]:
        where: dict[str, Any] = {}
        steps = []
        for one in ({"keys": each} if isinstance(each, str) else each for each in told["do"]):
            if "in" in one:  # another window: what was said of the one before says nothing of it
                where = {}
            where |= {key: one[key] for key in ("in", "focus", "dialog", "one_line", "window") if key in one}
            # A real field takes text. Risky lists say that of each field, as a page may only claim to have one.
            where["focus_editable"] = str(where.get("focus", "")).startswith("entry")
            steps.append(step_of(one, where))
        yield Task(
            told["name"], tuple(steps), frozenset(told.get("there_before", ())), told.get("sentence", told["name"])
        )


def recorded(folder: Path) -> Iterator[Task]:
    """Recorded runs as tasks: their actions with what they hit, and what is read there."""
    from agent.record.read import read_bundle
    from agent.screen.ocr import Ocr

    reader = Ocr("The measurement")
    for path in sorted(folder.glob("*/run.json")):
        bundle = read_bundle(path.parent)
        steps = [step for record in bundle.steps for step in _recorded(record, path.parent, reader)]
        yield Task(bundle.run.instruction or path.parent.name, tuple(steps), sentence=bundle.run.instruction or "")


def _recorded(record: StepRecord, folder: Path, reader: Ocr) -> Iterator[Step]:
    from PIL import Image

    from agent.screen.captions import caption_at

    for one in record.actions:
        if one.target is None or one.target["type"] in ("wait", "finish", "answer"):
            continue
        action = read_action(one.target)
        elements = tuple(each.element for each in one.elements if each.element is not None)
        title = elements[-1].window if elements else ""
        app = elements[-1].app if elements and elements[-1].app else title.rpartition(" - ")[2]
        place = Place(app, title) if title else None
        typing = isinstance(action, TypeText | PressKeys | HoldKeys)
        words, facts = "", frozenset[Fact]()
        if isinstance(action, Click) and record.images:
            image = Image.open(folder / record.images[0].file)
            read = caption_at(image, action.point.x, action.point.y, reader)
            words, facts = read.text, frozenset({"drawn as a button"} if read.framed else ())
        seen = Situation(
            focused=place if typing else None,
            under=None if typing else place,
            words=words,
            elements=elements,
            opens=_opened(one.detail or "") if isinstance(action, OpenApp) else None,
            facts=facts,
        )
        yield Step(action, seen, app, str(one.target))


@cache
def _installed() -> Mapping[str, App]:
    """The applications of this machine by their names, in the languages in which runs are recorded."""
    found = {}
    for language in ("de_DE.UTF-8", "en_US.UTF-8"):
        for desktop in ("GNOME", "XFCE"):
            environ = {**os.environ, "XDG_CURRENT_DESKTOP": desktop, "LANG": language, "LANGUAGE": language}
            found |= {app.name: app for app in installed_apps(environ)}
    return found


def _opened(told: str) -> tuple[str, ...]:
    """What a recorded action opened, by what the hand told of it."""
    name = re.sub(r"^(opened|started) (.* with )?", "", re.sub(r" \(window .*|; no new window.*", "", told))
    app = _installed().get(name)
    return (name,) if app is None else (app.name, app.id, app.program.rsplit("/", 1)[-1])


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--list", action="store_true", help="print every question")
    arguments.add_argument("--only", default="", metavar="TEXT", help="the lists with this text in their name")
    arguments.add_argument("--runs", type=Path, help="a folder of recorded runs")
    options = arguments.parse_args()
    policy = Policy.load("risky")
    tasks = [(path.stem, list(ordinary(path))) for path in sorted(DATA.glob("ordinary*.toml"))
             if options.only in path.stem]  # fmt: skip
    if options.runs:
        tasks.append((f"recorded runs of {options.runs}", list(recorded(options.runs))))
    every_count: list[int] = []
    for name, group in tasks:
        told = [(task, ask(policy, task)) for task in group]
        every_count += [len(one.questions) for _, one in told]
        tell_ordinary(name, told, every=options.list)
        silent = [len(ask(policy, replace(task, sentence="")).questions) for task in group]
        print(f"  if nobody knew what the person asked for: mean {statistics.mean(silent):.2f}, most {max(silent)}")
    if every_count:
        print(f"all lists: {len(every_count)} ordinary tasks, {sum(every_count)} questions, "
              f"mean {statistics.mean(every_count):.2f}, most {max(every_count)}")  # fmt: skip
    unasked = total = 0
    for path in sorted(DATA.glob("risky*.toml")):
        if options.only not in path.stem:
            continue
        asked = [(why, task, ask(policy, task)) for why, task in risky(path)]
        unasked += tell_risky(path.name, asked, every=options.list)
        total += len(asked)
    print(f"all lists: {total} risky actions, {unasked} unasked")
    return 1 if unasked else 0


def tell_ordinary(name: str, asked: Iterable[tuple[Task, Asked]], *, every: bool) -> None:
    asked = list(asked)
    counts = [len(one.questions) for _, one in asked]
    actions = sum(len(task.steps) for task, _ in asked)
    print(f"{name}: {len(counts)} tasks, {actions} actions; questions a task: median {statistics.median(counts):g}, "
          f"mean {statistics.mean(counts):.2f}, most {max(counts)}")  # fmt: skip
    for task, one in asked:
        if one.questions and (every or len(one.questions) > 1):
            print(f"  {len(one.questions)}  {task.name}")
            for question in one.questions:
                print(f"       {question}")


def tell_risky(name: str, asked: Iterable[tuple[str, Task, Asked]], *, every: bool) -> int:
    asked = list(asked)
    left = [(why, task) for why, task, one in asked if not one.last]
    print(f"{name}: {len(asked)} risky actions, {len(left)} unasked")
    kinds, missed = Counter(why for why, _, _ in asked), Counter(why for why, _ in left)
    for why, count in kinds.items():
        print(f"  {why:28} {count:4}  unasked {missed[why]}")
    for why, task in left:
        print(f"  UNASKED  {why}: {task.name}")
    if every:
        for why, _, one in asked:
            print(f"  {why}: {one.questions[-1] if one.questions else '-'}")
    return len(left)


if __name__ == "__main__":
    sys.exit(main())
