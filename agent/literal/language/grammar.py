"""Parses an instruction into a list of goals, by a grammar rather than a language model.

`sentences` splits the instruction before each verb and refuses words that the engine cannot follow, `table` finds what
a part says, and the `rules` build its goals. For anything else the error suggests the nearest sentence that the grammar
understands.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, Literal, TypeAlias

from agent.core.keys import chord
from agent.literal import goals as kinds
from agent.literal.goals import Goal, Target, target_of, with_target
from agent.literal.language.rules import controls, files, keyboard, windows
from agent.literal.language.rules.keyboard import times
from agent.literal.language.sentences import (
    FinalRefusalError,
    NotUnderstoodError,
    Part,
    check_refusals,
    split_instruction,
    without_courtesy,
)
from agent.literal.language.table import Groups, matches, wanted
from agent.literal.language.targets import place_name, preferences_of
from agent.literal.language.wishes import programs_in, told_about
from agent.literal.language.wording import nearest
from agent.literal.vocabulary import lexicon, quotes
from agent.literal.vocabulary.descriptions import quote_labels
from agent.literal.vocabulary.places import is_switch, known_thing

#: Builds the goals of a part that fits an entry of the table; None to try the next entry.
Builder: TypeAlias = Callable[[Part, Groups], list[Goal] | None]
_BUILDERS: Mapping[str, Builder] = vars(controls) | vars(files) | vars(keyboard) | vars(windows)

_PLACE = re.compile(r"(?i)(?:in|inside|within|on|under|from) (?P<place>.+)")
#: No name continues in lower case after a comma: "Preferences, stay".
_GOES_ON = re.compile(r"[A-Z]\w*, [a-z]")

#: A tab that is mentioned after its window: "in the Mouse settings, on the Buttons tab, ...".
_TAB_IN = re.compile(
    r"(?i)(?<=^in )(?P<window>[^,\x00]{1,40}), (?:on|in|under) (?P<tab>the [^,\x00]{1,40}? (?:tab|page|section))\b"
)
#: The same without a comma: "in the Mouse settings on the Buttons tab".
_ON_TAB_IN = re.compile(
    r"(?i)(?<=^in )(?!(?:the )?settings )(?P<window>[^,\x00]{1,40}?) on (?P<tab>the [^,\x00]{1,40}? tab)\b"
)
#: A tab together with its window.
_TAB = re.compile(
    r"(?i)(?P<tab>.+?) (?:tab|page|section) (?:of|in|on|from) (?P<window>.+)|(?P<owner>.+?)['’]s (?P<own>.+)"
)
#: Goals with a text or name that may go on with any words.
_FREE = (kinds.Type, kinds.Choose, kinds.Rename, kinds.MakeFolder, kinds.SaveAs, kinds.WriteFile)
#: Words that unquoted names in lower case do not have: articles, pronouns.
_NO_NAME = re.compile(r"(?<!\bof )\b(?:the|an?|my|your|its?|they|them|we|you|something|anything|somewhere)\b")
_ARROW = re.compile(r"\s+(?:>|->|→|▸|»|›)\s+")
_LEAST_OF_A_STEP = 2
_SECRET = re.compile(
    r"(?i)\b(?:password|passphrase|passcode|pin(?: code)?|credit card|card number|cvv|cvc|iban|secret)\b"
)


def read_instruction(instruction: str) -> list[Goal]:
    """Return the goals of an instruction, in order. Raises NotUnderstoodError, which names the part."""
    try:
        return _read(instruction)
    except NotUnderstoodError:
        if (quoted := quote_labels(instruction)) != instruction:
            with suppress(NotUnderstoodError):
                return _read(quoted)
        raise


def _read(instruction: str) -> list[Goal]:
    """Do as `read_instruction`, without looking for labels that contain words of the grammar."""
    pieces, quoted = split_instruction(instruction)
    pieces = [part for piece in pieces for part in _split_later(piece, quoted)]
    reader = _Reader(quoted)
    for index, piece in enumerate(pieces):
        reader.read(piece, last=index == len(pieces) - 1)
    goals = _joined(_through_preferences(_through_tabs(_through_paths(reader.goals, quoted))))
    if not goals:
        message = f"I do not understand “{quotes.show(' '.join(pieces), quoted)}”: it says nothing that I could do."
        raise NotUnderstoodError(message if pieces else "The instruction is empty.")
    return goals


def _split_later(piece: str, quoted: list[str]) -> list[str]:
    """Split a part before a verb that is often a word of a name, if both sides are understood by themselves."""
    for joint in _later_joint().finditer(piece):
        before, after = piece[: joint.start()], piece[joint.end() :]
        first = _goals_of(before, quoted)
        if first and not any(isinstance(goal, _FREE) for goal in first) and _goals_of(after, quoted):
            return [before, *_split_later(after, quoted)]
    return [piece]


@cache
def _later_joint() -> re.Pattern[str]:
    return re.compile(rf"(?:, (?:and |then )*| and (?:then )?| then )(?={lexicon.later_verb().pattern})")


def _goals_of(part: str, quoted: Sequence[str]) -> list[Goal]:
    """Return the goals of one part of an instruction by itself; none if it is not understood."""
    reader = _Reader([*quoted])
    with suppress(NotUnderstoodError):
        reader.read(part, last=True)
    return reader.goals


def _is_terminal(program: str) -> bool:
    return lexicon.programs_of_kind(program.casefold()) == lexicon.programs_of_kind("terminal")


class _Reader:
    """Reads the parts of one instruction, one after the other."""

    def __init__(self, quoted: list[str]) -> None:
        self.goals: list[Goal] = []
        self._quoted = quoted
        self._place = ""  # "in Z": the place of the next parts
        self._at = 0  # number of goals before the place was given
        self._about = ""  # the subject of a complaint or statement

    def read(self, text: str, *, last: bool) -> None:
        """Read a part. Raises NotUnderstoodError."""
        if self._read_phrase("phrases", text, last=last):
            return
        try:
            self._read_literally(text)
        except NotUnderstoodError:
            with suppress(NotUnderstoodError):
                if (wish := wanted(text)) != text:
                    self._read_literally(wish)
                    return
            with suppress(NotUnderstoodError):
                if self._read_phrase("wishes", text, last=last):
                    return
            if last or not (told := told_about(text)):
                raise
            self._about = told

    def _read_phrase(self, table: Literal["phrases", "wishes"], text: str, *, last: bool) -> bool:
        """Read a part as ordinary phrasing; return whether it is in the table. Raises NotUnderstoodError."""
        entry, groups = next(matches(table, text, self._quoted), ({}, {}))
        if not entry:
            return False
        if entry.get("complaint") and "," in groups["what"]:
            return False  # an order stands before it
        if entry.get("complaint") and not last:
            self._about = quotes.show(groups["about"], self._quoted)
            return True
        shown = quotes.show(text, self._quoted)
        if not entry["does"]:
            examples = "“switch to the dark theme”, “make the text bigger”, “turn the brightness down”"
            raise NotUnderstoodError(f"I do not know what to do about “{shown}”: say it, for example {examples}.")
        for name in entry.get("with", {}):
            check_refusals(f"enable {groups[name]}")  # a verb that takes a label, because the group may be a label
        if (goals := self._built(entry, text, groups)) is None:
            raise NotUnderstoodError(f"I do not understand “{shown}”.{nearest(shown)}")
        self._add(goals)
        return True

    def _read_literally(self, text: str) -> None:
        name = quotes.show(text, self._quoted)
        if lexicon.is_risky(name) and is_switch(name):  # "Sort folders before files"
            self.goals.append(kinds.Toggle(Target(name), on=True))
            self._about = ""
            return
        whole = text
        place, text = _place_before(text, self._quoted)
        if not self._chords(text):
            check_refusals(whole.removesuffix(text))
            check_refusals(text)  # by itself, so that it begins with a verb, after which a label may hold such words
        goals = self._read_part(text) if text else []
        if place:
            self._place, self._at = place, len(self.goals)
        if text:
            self._add(goals)

    def _read_part(self, text: str) -> list[Goal]:
        if chords := self._chords(text):
            return chords
        for entry, groups in matches("rules", text, self._quoted):
            if (goals := self._built(entry, text, groups)) is not None:
                return goals
        shown = Part(text, self._quoted).shown(text)
        if is_switch(shown):  # "dark theme, please"
            return [kinds.Toggle(Target(shown), on=True)]
        raise NotUnderstoodError(f"I do not understand “{shown}”.{nearest(shown)}")

    def _chords(self, text: str) -> list[Goal]:
        """Read "undo", and "open a new tab in the file manager". A terminal has chords of its own."""
        rest, count = times(text)
        for program, said in programs_in(Part(rest, self._quoted).shown(rest)):
            keys = lexicon.shortcuts().get(said.casefold())
            if keys and not _is_terminal(program):
                return [*([kinds.Open(program)] if program else []), *[kinds.Press(chord(keys))] * count]
        return []

    def _built(self, entry: Mapping[str, Any], text: str, groups: Mapping[str, str]) -> list[Goal] | None:
        return builder(entry["does"])(Part(text, self._quoted, *self._it()), groups)

    def _add(self, goals: list[Goal]) -> None:
        """Add the goals of a part, which are at the place that was given."""
        check_secrets(goals)
        _check_names(goals, self._quoted)
        if self._place:
            if any(isinstance(goal, kinds.Open) for goal in goals) and len(self.goals) > self._at:
                self._place = ""
            else:
                goals = _placed(goals, self._place, first=len(self.goals) == self._at)
        self.goals += goals
        self._about = ""

    def _it(self) -> tuple[str, bool, bool]:
        """Return what "it" refers to after the last part, and whether that was opened, and whether it is a file."""
        if self._about:
            return self._about, self._about.casefold() in lexicon.programs(), False
        for goal in reversed(self.goals):
            match goal:
                case kinds.Open(name, kind):
                    return name, True, kind in ("", "file", "folder")
                case kinds.ArrangeWindow(_, name) | kinds.Close(name) if name:
                    return name, True, False
                case kinds.MakeFolder(name, where) | kinds.Rename(_, name, where) | kinds.Trash(name, where):
                    return (f"{where}/{name}" if where else name), False, True
                case kinds.Transfer(name, to):
                    return f"{to}/{name.rpartition('/')[2]}", False, True
                case kinds.WriteFile(_, name) if name:
                    return name, False, True
                case kinds.Type():
                    return "", False, False
                case _ if (target := target_of(goal)) is not None:
                    return target.name, False, files.is_file(target.name)
        return "", False, False


def builder(name: str) -> Builder:
    """Return the builder that an entry of the table names: the function `_NAME` of one of the `rules`."""
    return _BUILDERS[f"_{name}"]


def check_secrets(goals: Sequence[Goal]) -> None:
    """Raise FinalRefusalError for goals that would enter a password or the like."""
    for goal in goals:
        target = None if isinstance(goal, kinds.Click | kinds.Toggle) else target_of(goal)
        if target is not None and _SECRET.search(f"{target.name} {target.whole}"):
            raise FinalRefusalError("I do not enter passwords or the like: please do that yourself.")


def _check_names(goals: Sequence[Goal], quoted: Sequence[str]) -> None:
    """Raise NotUnderstoodError for a name in lower case that says more than a name does: "frobnicate the widget"."""
    for goal in goals:
        target = target_of(goal)
        names = [target.name] if target is not None and (target.whole or isinstance(goal, kinds.SetValue)) else []
        if target is not None and target.name not in quoted and _GOES_ON.search(target.name):
            raise NotUnderstoodError(
                f"I do not understand “{target.name}”: say it in other words, or in quotation marks."
            )
        match goal:
            case kinds.Toggle(Target(name)) if name not in quoted:
                names.append(name)
            case kinds.Open(name, kind) if kind not in ("page", "file"):
                names.append(name)
            case kinds.Choose(value):
                names.append(value)
            case kinds.ArrangeWindow(_, name) | kinds.Close(name):
                names.append(name)
        if isinstance(goal, kinds.Open) and goal.name not in quoted and lexicon.later_verb().match(goal.name):
            raise NotUnderstoodError(f"I do not understand “{goal.name}”: say it by itself, or in quotation marks.")
        # "Large Text and quiet the neighbours"
        names += [name for one in names if (name := one.rpartition(" and ")[2]) != one]
        for name in names:
            if name.islower() and name not in quoted and not known_thing(name) and _NO_NAME.search(name):
                raise NotUnderstoodError(
                    f"I do not understand “{name}”: say it in other words. If it is a name, put it in quotation marks."
                )


def _place_before(text: str, quoted: list[str]) -> tuple[str, str]:
    """Split "in Z, do it" into the place and the rest. The rest is "" if it is in the next part."""
    verb = re.compile(rf",? (?=(?i:{lexicon.verbs()})(?![\w'’-])|{lexicon.later_verb().pattern})")
    for place_of_tab in (_TAB_IN, _ON_TAB_IN):
        text = place_of_tab.sub(r"\g<tab> of \g<window>", text)
    match = _PLACE.fullmatch(text)
    if match is None:
        return "", text
    part = Part(text, quoted)
    for cut in verb.finditer(match["place"]):
        place, rest = match["place"][: cut.start()], match["place"][cut.end() :]
        if place.strip(" ,").casefold() not in ("", "the", "a", "an", "my", "this"):
            return place_name(part, without_courtesy(place)), without_courtesy(rest)
    return place_name(part, without_courtesy(match["place"])), ""


def _placed(goals: Sequence[Goal], place: str, *, first: bool) -> list[Goal]:
    """Put a place into goals. If a goal has no field for it, open the place first."""
    applications = lexicon.config()["applications"]
    placed: list[Goal] = []
    for goal in goals:
        match goal:
            case kinds.Open() | kinds.Scroll():
                if goal.inside.endswith(" menu") and first and not placed and place.casefold() in lexicon.programs():
                    placed.append(kinds.Open(place))  # "In Files, open Preferences from the main menu"
                placed.append(replace(goal, inside=goal.inside or place))
            case kinds.MakeFolder() | kinds.Rename() | kinds.Trash():
                is_manager = place.casefold() in applications["file_managers"]
                placed.append(replace(goal, where=goal.where or ("" if is_manager else place)))
            case kinds.Type(text, None) if place.casefold() in applications["editors"]:
                placed.append(
                    kinds.WriteFile(text, editor="" if place.casefold() in ("text editor", "editor") else place)
                )
            case kinds.Type(text, None) if re.search(r"\b(?:field|box|bar|entry|search)$", place, re.IGNORECASE):
                placed.append(kinds.Type(text, Target(place, "entry")))
            case _ if (target := target_of(goal)) is not None:
                if target.inside and first and not placed and place.casefold() in lexicon.programs():
                    placed.append(kinds.Open(place))  # "In Files, click Documents in the sidebar"
                placed.append(with_target(goal, replace(target, inside=target.inside or place)))
            case _:
                placed.extend([kinds.Open(place), goal] if first and not placed else [goal])
    return placed


def _through_paths(goals: Sequence[Goal], quoted: Sequence[str]) -> list[Goal]:
    """Go the path of a goal before it: "X in Settings > Keyboard", "View > Line Numbers"."""
    through: list[Goal] = []
    for goal in goals:
        target = target_of(goal)
        if target is None:
            through.append(goal)
            continue
        first, *path = _ARROW.split(target.inside)
        is_path = not any(_ARROW.search(one) for one in quoted)
        *way, name = _ARROW.split(target.name) if is_path else [target.name]
        if path:
            through += [kinds.Open(first), *(kinds.Click(Target(step)) for step in path)]
            target = replace(target, inside="", whole="")
        if all(len(step) >= _LEAST_OF_A_STEP for step in (*way, name)):  # "Sort A > Z" is one name
            first_goal = goal if isinstance(goal, kinds.Click) else kinds.Click(target)
            through += [replace(first_goal, target=Target(step, inside=target.inside)) for step in way]
            target = replace(target, name=name, whole=_ARROW.split(target.whole)[-1] if way else target.whole)
        through.append(with_target(goal, target))
    return through


def _through_tabs(goals: Sequence[Goal]) -> list[Goal]:
    """Turn "in the Focus tab of Window Manager" into a click on the tab and a goal in the window."""
    through: list[Goal] = []
    for goal in goals:
        target = target_of(goal)
        found = _TAB.fullmatch(target.inside) if target is not None else None
        if target is None or found is None:
            through.append(goal)
            continue
        named = found["window"] or found["owner"]
        window = place_name(Part(named, []), named)
        role = "page tab" if found["tab"] else ""  # "Mousepad's Document menu"
        tab = kinds.Click(Target(found["tab"] or found["own"], role, inside=window))
        if tab not in through:
            through.append(tab)
        through.append(with_target(goal, replace(target, inside=window)))
    return through


def _through_preferences(goals: Sequence[Goal]) -> list[Goal]:
    """Open the preferences before a goal "in the Terminal preferences"; the goal is in the window that opens."""
    through: list[Goal] = []
    for goal in goals:
        target = target_of(goal)
        if target is None or not (application := preferences_of(target.inside)):
            through.append(goal)
            continue
        opened = kinds.Open(application, "settings")
        if opened != next((one for one in reversed(through) if isinstance(one, kinds.Open | kinds.Close)), None):
            through.append(opened)
        whole = "" if application.casefold() in target.whole.casefold() else target.whole  # without its place
        through.append(with_target(goal, replace(target, inside="", whole=whole, here=True)))
    return through


def _joined(goals: Sequence[Goal]) -> list[Goal]:
    """Join "write X" and "save it as Y" to one goal."""
    joined: list[Goal] = []
    for goal in goals:
        before = joined[-1] if joined else None
        if isinstance(goal, kinds.SaveAs) and goal.name and isinstance(before, kinds.WriteFile) and not before.save_as:
            joined[-1] = replace(before, save_as=goal.name)
        elif isinstance(goal, kinds.SaveAs) and isinstance(before, kinds.Close):
            raise NotUnderstoodError("I cannot save what is closed already: say first what to save.")
        else:
            joined.append(goal)
    return _in_one_text(joined)


def _in_one_text(goals: list[Goal]) -> list[Goal]:
    """Open the editor first if only the last part names it: "type A, press Enter and type B in the text editor"."""
    *before, last = goals or [kinds.Press(())]
    typed = all(isinstance(one, kinds.Press) or (isinstance(one, kinds.Type) and one.into is None) for one in before)
    if not (typed and before and isinstance(before[0], kinds.Type) and isinstance(last, kinds.WriteFile)):
        return goals
    saved = [kinds.SaveAs(last.save_as)] if last.save_as else []
    return [kinds.WriteFile(before[0].text, editor=last.editor), *before[1:], kinds.Type(last.text), *saved]
