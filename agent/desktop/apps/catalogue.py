"""Finds the installed application that a person means by a name, independent of the operating system."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foundation.configs import load_config


@dataclass(frozen=True, slots=True)
class App:
    """An installed application."""

    id: str  # the system's identifier: the desktop file without its suffix, a bundle path, an AppUserModelID
    name: str  # in the person's language
    other_names: tuple[str, ...] = ()  # the untranslated name and generic names
    command: tuple[str, ...] = ()  # the program and its arguments
    terminal: bool = False  # whether it runs in a terminal
    files: tuple[str, ...] = ()  # the MIME types that it opens
    source: Path | None = None  # its desktop file; None on other systems
    categories: tuple[str, ...] = ()  # of its desktop file
    in_menus: bool = True  # False for panels of a settings application, which are opened by name only

    @property
    def ordinary(self) -> bool:
        """Whether its categories say that just opening it is harmless (`configs/applications.toml`)."""
        kinds, own = load_config("applications.toml")["categories"], {*self.categories}
        return not self.terminal and not own.isdisjoint(kinds["ordinary"]) and own.isdisjoint(kinds["weighty"])

    @property
    def program(self) -> str:
        """The program in its command, also after `env NAME=value`; "" if there is none."""
        if self.command[:1] != ("env",):
            return "".join(self.command[:1])
        return next((part for part in self.command[1:] if "=" not in part), "")


def plain(text: str) -> str:
    """Normalise a name: lower case, without accents, punctuation and filler words ("the", "app")."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = re.findall(r"\w+", letters)
    kept = [word for word in words if word not in ("the", "app", "application", "program", "my", "please")]
    return " ".join(kept or words)


def _singular(text: str) -> str:
    return " ".join(word.removesuffix("s") for word in plain(text).split())


class Catalogue:
    """The installed applications, searchable by the words people use.

    `desktops` are the names of the running desktop (XDG_CURRENT_DESKTOP), whose own applications come first.
    """

    def __init__(self, apps: Iterable[App], desktops: Collection[str] = ()) -> None:
        self._desktops = desktops
        self._apps = sorted(apps, key=lambda app: (app.name.casefold(), app.id))

    def names(self) -> list[str]:
        return list(dict.fromkeys(app.name for app in self._apps if app.in_menus))

    def find(self, query: str) -> App | None:
        """Return the application meant by a name; None rather than a weak guess."""
        wanted = plain(query)
        if not wanted:
            return None
        exact = self._of_kind(wanted, own=True)[:1]  # preferred over another desktop's "Text Editor"
        exact = exact or [app for app in self._apps if wanted in (plain(app.name), plain(app.id))]
        exact = sorted(exact, key=lambda app: not app.in_menus) or self._of_kind(wanted)
        subject, _, last = wanted.rpartition(" ")
        if not exact and last in ("settings", "preferences", "panel"):  # "keyboard settings" is Keyboard
            exact = [app for app in self._apps if plain(app.name) == subject]
            one = _singular(subject)  # "display settings" is Displays
            exact = exact or [app for app in self._apps if one in map(_singular, (app.name, *app.other_names))]
            exact = exact or self._panels(subject)
        if exact:
            return exact[0]
        scored = [(self._score(app, wanted), app) for app in self._apps if app.in_menus]
        best = max(scored, key=lambda pair: (pair[0], -len(pair[1].name)), default=None)
        return best[1] if best is not None and best[0] >= 60 else None

    def similar(self, query: str, limit: int = 5) -> list[str]:
        """Return names similar to the query, for an error message."""
        from rapidfuzz import fuzz, process

        found = process.extract(
            plain(query), self.names(), scorer=fuzz.partial_ratio, processor=plain, limit=limit, score_cutoff=50
        )
        return [name for name, _, _ in found]

    def _of_kind(self, wanted: str, *, own: bool = False) -> list[App]:
        """Return the applications of a kind ("settings", "terminal"), from the table in `configs/applications.toml`.

        Those of the running desktop come first. With `own`, only those are returned.
        """
        by_id = {app.id.casefold(): app for app in self._apps}
        kinds = load_config("applications.toml")["kinds"].values()
        named = [kind for kind in kinds if wanted in (plain(word) for word in kind["words"])]
        ids: list[str] = []
        for kind in named:
            ids += [name for one, names in kind.get("own", {}).items() if one in self._desktops for name in names]
            ids += [] if own else kind["desktop_files"]
        return [by_id[name.casefold()] for name in ids if name.casefold() in by_id]

    def opener(self, types: Sequence[str], chosen: Sequence[str] = ()) -> App | None:
        """Return the application that opens files of a type; None if there is none.

        `types` are the type, then more general ones ("text/markdown", "text/plain"). Of the desktop files that the
        person or the system chose for it, the first installed one is used.
        """
        by_id = {app.id: app for app in self._apps}
        for identifier in chosen:
            if identifier in by_id:
                return by_id[identifier]
        for kind in load_config("applications.toml")["kinds"].values():
            if set(types) & set(kind.get("files", ())):
                own = next((app for app in self._of_kind(plain(kind["words"][0])) if app.in_menus), None)
                if own is not None:
                    return own
        able = (app for kind in types for app in self._apps if kind in app.files)
        return next((app for app in able if not app.terminal), None)

    def _panels(self, subject: str) -> list[App]:
        """Return the settings panel whose name, translated or not, has these words; none if several match."""
        words = set(_singular(subject).split())
        panels = [(app, (app.name, *app.other_names)) for app in self._apps if not app.in_menus]
        found = [app for app, names in panels if any(words <= set(_singular(name).split()) for name in names)]
        return found if len(found) == 1 else []

    @staticmethod
    def _score(app: App, wanted: str) -> float:
        from rapidfuzz import fuzz

        own, names = plain(app.name), [plain(name) for name in (app.name, *app.other_names)]
        words, last = set(wanted.split()), wanted.rpartition(" ")[2]
        # A part of another name counts only if it ends the name: "advanced" does not find "Advanced Text Editor".
        partly = [name for name in names if name == own or name.endswith(last)]
        program = plain(app.program.rsplit("/", 1)[-1])
        closest = max(fuzz.ratio(wanted, name) for name in [*names, program])
        scores = {
            95: wanted in names,
            93: wanted == program,
            88: any(name.startswith(wanted + " ") for name in partly),
            85: any(words <= set(name.split()) for name in partly),
            closest * 0.7: closest >= 86,
        }
        return next((score for score, fits in scores.items() if fits), 0)


def takes_text(app: str, kind: Literal["primary", "completing"]) -> bool:
    """Whether an application handles text specially, by its class or identifier (configs/pasting.toml).

    "primary": terminals and the like, which paste with another chord, on X11 from PRIMARY. "completing": applications
    that complete or correct text, or insert closing brackets, while it is typed.
    """
    return any(re.search(one, app, re.IGNORECASE) for one in load_config("pasting.toml")[kind])
