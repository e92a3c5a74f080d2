"""Remembers what a run did before, as far as it changes the meaning of the next action.

A key has little meaning by itself: "c" closes a window after alt+space, backspace empties a document after ctrl+a, "o"
completes a command begun three actions ago. This module does no I/O: it takes a situation and returns it completed.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field, replace

from agent.core.actions import TYPING, Action, Click, Drag, HoldKeys, KeyAction, LongPress, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.safety.commands import is_harmless, is_harmless_chord
from agent.safety.situation import Fact, Place, Situation
from agent.safety.targets import (
    MENU_ITEMS,
    claimed_facts,
    facts_of_focus,
    facts_of_place,
    focus_of,
    is_letter,
    is_mnemonic,
    is_page,
    takes_text,
)
from agent.safety.text import spelled
from agent.safety.words import shipped_words
from agent.screen.outline import Element

#: Characters of earlier text to keep, for judging a text that is typed in pieces.
_REMEMBERED = 300
#: Characters not written by the run that it may delete from a document before saving needs approval.
_MUCH = 40
#: Estimated characters that a key selects or erases if the number is unknown: for a word, and for a line or more.
_WORD, _LINE = 8, 40
#: Seconds after which a held key counts as repeating many times.
_REPEATS = 0.5

_MODIFIERS = frozenset({"ctrl", "alt", "altgr", "shift", "super"})
_ACROSS = frozenset({"left", "right"})
_FAR = frozenset({"up", "down", "page_up", "page_down", "home", "end"})
_NAVIGATING = _ACROSS | _FAR | {"tab", "escape"}
#: Chords that open the desktop's launcher or application menu, where entered names are started.
_LAUNCHERS = ({"super"}, {"alt", "f1"}, {"alt", "f2"}, {"alt", "f3"}, {"super", "space"}, {"super", "a"},
              {"super", "s"}, {"super", "r"}, {"ctrl", "escape"})  # fmt: skip
#: Chords, besides alt and a letter, that open a menu of the application, the selection or the window.
_MENUS = ({"f10"}, {"shift", "f10"}, {"menu"}, {"alt"}, {"altgr"}, {"alt", "space"}, {"altgr", "space"})


@dataclass(frozen=True, slots=True)
class _Typed:
    """The text typed into a window since the last change of focus. It is a guess where fields cannot be read."""

    window: Hashable
    text: str = ""  # only the end of it is kept
    pieces: int = 0  # how many actions made it

    def after(self, action: Action[DesktopPoint]) -> "_Typed":
        """Return the state after an action."""
        entered = spelled(action)
        if isinstance(action, PressKeys) and action.keys == ("backspace",):
            text = self.text[:-1]
        else:
            text = (self.text + entered)[-_REMEMBERED:]
        alone = not entered and set(getattr(action, "keys", ())) <= _MODIFIERS
        pieces = 0 if _enters(action) or not text else self.pieces + (not alone)
        return _Typed(self.window, text, pieces)


@dataclass(slots=True)
class _TargetState:
    window: Hashable = None  # the target of the last action
    all_selected: bool = False
    selected: int = 0  # approximate number of characters
    credit: int = 0  # characters directly before the caret that the run typed
    menu: bool = False  # a menu was opened
    focus: Element | None = None  # the focused element at that time
    aimed: str = ""  # the words at the last click


@dataclass(slots=True)
class InputHistory:
    """What a run did so far. Call `judge` with an action, then `did` if it was carried out."""

    there_before: Collection[Hashable] = ()  # windows that existed when the run began: their text is not the run's own
    _typed: _Typed = field(default_factory=lambda: _Typed(None))
    _here: _TargetState = field(default_factory=_TargetState)
    _launcher: bool = False
    _exporting: bool = False  # an export of secrets was chosen, and nothing was saved or cancelled since
    _copied: bool = False  # this run copied the clipboard's content
    _copied_in: Hashable = None  # in this window
    _own: dict[Hashable, str] = field(default_factory=dict)  # titles of the windows whose whole text is the run's own
    _met: set[Hashable] = field(default_factory=set)
    _lost: Counter[str] = field(default_factory=Counter)  # characters deleted from documents, by application
    _saving: str = ""  # the application that was told to save; saving may change its window's title
    _judged: set[tuple[Hashable, str]] = field(default_factory=set)  # windows, and judged contents of their fields
    _page: tuple[Hashable, str] = (None, "")  # window and title of the page whose fields were filled in
    _filled: set[Hashable] = field(default_factory=set)
    _last: tuple[Situation, Hashable] | None = None

    def judge(self, action: Action[DesktopPoint], seen: Situation, window: Hashable = None) -> Situation:
        """Complete the situation of an action with the facts that follow from earlier actions.

        `window` is the desktop's id of the target window; None if unknown.
        """
        self._last = seen, window
        place = seen.focused if isinstance(action, TYPING) else seen.under
        if place is not None:
            self._meet(window, place)
        facts = {*seen.facts, *facts_of_place(action, place, seen), *self._facts(action, place, seen, window)}
        before = self._typed if self._typed.window == window else _Typed(window)
        # In a long text of an application, Enter begins a new line and sends nothing.
        sent = () if seen.sent is None or ("a long text" in facts and not is_page(place)) else (seen.sent,)
        unjudged = tuple(one for one in (*sent, *seen.fields) if (window, _words(one)) not in self._judged)
        claimed = claimed_facts(action, place, seen)
        seen = replace(seen, claimed=claimed, facts=frozenset(facts), unjudged=unjudged)
        if not isinstance(action, TYPING):
            return seen
        aimed = self._here.aimed if self._here.window == window and "a text" not in facts else ""
        return replace(seen, typed=seen.typed if seen.read else before.text, words=seen.words or aimed)

    def did(self, action: Action[DesktopPoint]) -> None:
        """Note that the action judged last was carried out, possibly as the person changed it."""
        if self._last is None:
            return
        seen, window = self._last
        if isinstance(action, TYPING):
            self._did_type(action, seen, window)
        else:
            self._did_point(action, seen, window)

    # Facts from earlier actions

    def _facts(self, action: Action[DesktopPoint], place: Place | None, seen: Situation, window: Hashable) -> set[Fact]:
        here = self._here if self._here.window == window else _TargetState(window)
        typing = isinstance(action, TYPING)
        holds: dict[Fact, bool] = {
            "own text": place is not None and window in self._own,
            "text was lost": place is not None and self._lost[place.app] >= _MUCH,
            "all is replaced": here.all_selected and _replaces(action, seen),
            "own clipboard": self._copied,
            "copied elsewhere": self._copied and self._copied_in != window,
            "secrets come out": self._exporting,
            "something stands there": typing and _enters(action) and (not seen.read or bool((seen.sent or "").strip())),
            "a form": place is not None and self._page == (window, place.title) and len(self._filled) > 1,
            "unseen choice": typing and here.menu and _chooses(action, seen) and not self._left_menu(seen),
            "launcher": typing and self._launcher,
            "in pieces": typing and _enters(action) and self._pieces(action, seen, window) > 1,
            "a harmless command": typing and _only_reads(action, seen),
            "typed there": self._typed.window == window and bool(self._typed.text.strip()),
        }
        return {fact for fact, is_so in holds.items() if is_so}

    def _pieces(self, action: Action[DesktopPoint], seen: Situation, window: Hashable) -> int:
        """Return how many actions, this one included, made the text that Enter submits and that cannot be read."""
        focus, before = focus_of(seen), self._typed
        if seen.read or before.window != window or not before.text or (focus is not None and not takes_text(focus)):
            return 0
        return before.pieces + bool(spelled(action).strip())

    def _left_menu(self, seen: Situation) -> bool:
        """Whether the key that seemed to open a menu moved the focus into a field instead."""
        now, before = focus_of(seen), self._here.focus
        if now is None or before is None or not takes_text(now):
            return False
        return (now.role, now.name, now.box) != (before.role, before.name, before.box)

    def _meet(self, window: Hashable, place: Place) -> None:
        """Note a window. If it appeared empty during the run, all of its text is the run's own."""
        title = place.title.strip().lstrip("*•● ").strip()
        if window is None or not title:
            return
        if window not in self._met:
            self._met.add(window)
            if window not in self.there_before and shipped_words("a new document").found(title):
                self._own[window] = title
        elif window in self._own and self._own[window] != title:
            if self._saving == place.app or self._begins(window, title):  # saved, or titled by its text
                self._own[window] = title
            else:  # something else was opened in it
                del self._own[window]

    def _begins(self, window: Hashable, title: str) -> bool:
        """Whether a title is the beginning of the run's typed text: some editors name new documents that way."""
        lines = self._typed.text.strip().splitlines() if self._typed.window == window else []
        return bool(lines) and title.startswith(lines[0][:_WORD])

    # Updates after an action

    def _did_type(self, action: KeyAction, seen: Situation, window: Hashable) -> None:
        keys = frozenset() if isinstance(action, TypeText) else frozenset(action.keys)
        before = self._typed if self._typed.window == window else _Typed(window)
        # After a tab, the next text goes to another field.
        self._typed = _Typed(window) if "tab" in keys else before.after(action)
        if seen.read and spelled(action).strip():
            self._judged.add((window, _words(seen.typed + spelled(action) + seen.rest)))
        self._fill(action, seen, window)
        if self._here.window != window:
            self._here = _TargetState(window)
        if keys & {"enter", "kp_enter", "space"}:
            self._choose(seen)
        here, app = self._here, seen.focused.app if seen.focused else ""
        if not (here.aimed and keys and keys <= _MODIFIERS):
            here.aimed = ""
        taken = self._taken(action, keys, seen)
        if taken and window not in self._own and "one line" not in facts_of_focus(seen):
            self._lost[app] += taken
        if {"ctrl", "s"} <= keys:
            self._saved(app)
        if "ctrl" in keys and keys & {"c", "x", "insert"}:
            self._copied, self._copied_in = True, window
        if keys in _MENUS or is_mnemonic(keys):
            here.menu, here.focus = True, focus_of(seen)
        elif "escape" in keys or (_chooses(action, seen) and not is_letter(action)):
            here.menu = False
        if keys in _LAUNCHERS:
            self._launcher = True
        elif "escape" in keys or _enters(action):
            self._launcher = False

    def _fill(self, action: KeyAction, seen: Situation, window: Hashable) -> None:
        """Note the fields that were filled in on a page."""
        focus, place = focus_of(seen), seen.focused
        if focus is None or place is None or not spelled(action).strip() or not takes_text(focus):
            return
        if self._page != (window, place.title):
            self._page, self._filled = (window, place.title), set()
        field = focus.name, focus.label, focus.box
        # A long text is a post, a comment or an answer by itself; a single line may be only a search.
        self._filled |= {field} if "one line" in facts_of_focus(seen) else {field, (*field, "long")}

    def _taken(self, action: KeyAction, keys: frozenset[str], seen: Situation) -> int:
        """Track the selection. Return approximately how many characters not written by the run the action deletes."""
        here, plain_keys = self._here, keys - _MODIFIERS
        if "shift" in keys and plain_keys & (_ACROSS | _FAR):
            here.selected += _LINE if plain_keys & _FAR or "ctrl" in keys else 1
            here.all_selected = here.all_selected or ("ctrl" in keys and bool(plain_keys & {"home", "end"}))
            return 0
        if "ctrl" in keys and plain_keys == {"a"}:
            here.all_selected, here.selected = True, 0
            return 0
        if ("ctrl" in keys and plain_keys == {"c"}) or (keys and not plain_keys):
            return 0
        taken = 0
        if here.all_selected and _replaces(action, seen):
            here.credit = 0  # it was approved, or is the run's own text
        elif here.selected and _replaces(action, seen):
            taken = here.selected
        elif plain_keys & {"backspace", "delete"}:
            often = isinstance(action, HoldKeys) and action.seconds >= _REPEATS
            size = _LINE if often or len(plain_keys) > 1 else _WORD if "ctrl" in keys else 1
            covered = min(here.credit, size) if "backspace" in plain_keys else 0
            here.credit -= covered
            taken = size - covered
        elif "ctrl" in keys and plain_keys & (
            {"x", "k", "d", "u", "l", "y"} if _may_be_text(seen) and not is_page(seen.focused) else {"x"}
        ):
            taken = _LINE
        if plain_keys & _NAVIGATING:
            here.credit = 0
        here.credit += len(spelled(action))
        here.all_selected, here.selected = False, 0
        return taken

    def _did_point(self, action: Action[DesktopPoint], seen: Situation, window: Hashable) -> None:
        self._launcher = False
        if not isinstance(action, Click | LongPress | Drag):
            return
        texts = (seen.words, *(one.name for one in seen.elements))
        self._choose(seen)
        text = any(takes_text(one) for one in seen.elements)
        pressed = isinstance(action, Click) and action.button == "left"
        on_menu = any(one.role == "menu" for one in seen.elements)
        opens = isinstance(action, Click) and (action.button == "right" or on_menu)
        selected = self._here.all_selected and self._here.window == window
        kept = selected and isinstance(action, Click) and not text and bool(seen.elements)
        here = self._here = _TargetState(window, all_selected=kept or _says("selects everything", texts), menu=opens)
        if _says("copies", texts):
            self._copied, self._copied_in = True, window
        if _says("saves", texts):
            self._saved(seen.under.app if seen.under else "")
        if pressed:
            here.aimed = seen.words
        if text and isinstance(action, Click) and "shift" in action.held:  # shift+click selects up to that point
            here.selected = _LINE
        elif text and isinstance(action, Click) and action.count >= 2:
            here.selected = _WORD if action.count == 2 else _LINE
        elif isinstance(action, Drag) and (text or not seen.elements):
            here.selected = _LINE

    def _choose(self, seen: Situation) -> None:
        """Note whether the pressed button begins an export of secrets; every other button ends it."""
        if _says("exports secrets", (seen.words, *(one.name for one in seen.elements))):
            self._exporting = True
        elif any(one.role == "push button" for one in seen.elements):
            self._exporting = False

    def _saved(self, app: str) -> None:
        self._saving = app
        self._lost.pop(app, None)


def _says(words: str, texts: Iterable[str]) -> bool:
    return any(map(shipped_words(words).found, texts))


def _words(text: str) -> str:
    return " ".join(text.split())


def _replaces(action: Action[DesktopPoint], seen: Situation) -> bool:
    """Whether an action replaces or deletes the selection."""
    if isinstance(action, Click | LongPress):
        return _says("cuts or pastes", (seen.words, *(each.name for each in seen.elements)))
    focus = focus_of(seen)
    if spelled(action):  # outside of text, Enter opens the selection
        return bool(spelled(action).strip("\r\n")) or focus is None or takes_text(focus)
    keys = set(action.keys) if isinstance(action, PressKeys | HoldKeys) else set()
    return bool(keys & {"backspace", "delete"}) or ("ctrl" in keys and bool(keys & {"x", "v", "k", "d", "h"})) or (
        {"shift", "insert"} <= keys
    )  # fmt: skip


def _only_reads(action: Action[DesktopPoint], seen: Situation) -> bool:
    """Whether, in a terminal, the line resulting from an action only reads."""
    entered, focus = spelled(action), focus_of(seen)
    if isinstance(action, PressKeys | HoldKeys) and entered in ("", "\t"):
        return is_harmless_chord(action.keys, at_prompt=seen.read and focus is not None and focus.role == "terminal")
    head, end, tail = entered.replace("\r", "\n").partition("\n")
    return seen.read and is_harmless(seen.typed + head + seen.rest + end + tail)


def _may_be_text(seen: Situation) -> bool:
    """Whether a text may have the focus. Elsewhere, these chords do not delete; ctrl+d, for example,
    bookmarks a page.
    """
    focus = focus_of(seen)
    return focus is None or takes_text(focus)


def _enters(action: Action[DesktopPoint]) -> bool:
    return any(char in "\n\r" for char in spelled(action))


def _chooses(action: Action[DesktopPoint], seen: Situation) -> bool:
    """Whether an action chooses an item of unknown name from an open menu."""
    if not spelled(action):
        return False
    focus = focus_of(seen)
    named = focus is not None and focus.role in MENU_ITEMS and bool(focus.name)
    return not (named and not spelled(action).strip())  # Enter and space choose the focused item
