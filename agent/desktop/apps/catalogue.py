"""Finds the application that a person means by a name, among those installed. Pure: knows no system."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from foundation.configs import load_config


@dataclass(frozen=True, slots=True)
class App:
    """An installed application."""

    id: str  # the system's: the desktop file without its suffix, a bundle path, an AppUserModelID
    name: str  # what it is called, in the person's language
    other_names: tuple[str, ...] = ()  # its untranslated name and generic names
    keywords: tuple[str, ...] = ()  # words it may be found by
    command: tuple[str, ...] = ()  # the program and its arguments
    terminal: bool = False  # whether it needs a terminal around it
    files: tuple[str, ...] = ()  # the types of files it opens, as MIME names them; empty for none
    source: Path | None = None  # the file that describes it; None where there is none
    in_menus: bool = True  # False for panels of a settings application, which are opened by name only

    @property
    def program(self) -> str:
        """The program that its command starts, also behind `env NAME=value`; "" where there is none."""
        if self.command[:1] != ("env",):
            return "".join(self.command[:1])
        return next((part for part in self.command[1:] if "=" not in part), "")


def plain(text: str) -> str:
    """Lower case, without accents, punctuation and the words that say nothing ("the", "app")."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = re.findall(r"\w+", letters)
    kept = [word for word in words if word not in ("the", "app", "application", "program", "my", "please")]
    return " ".join(kept or words)


def _singular(text: str) -> str:
    return " ".join(word.removesuffix("s") for word in plain(text).split())


class Catalogue:
    """The installed applications, searchable by the words people use.

    `desktops` is what the desktop calls itself (XDG_CURRENT_DESKTOP); its own applications come first.
    """

    def __init__(self, apps: Iterable[App], desktops: Collection[str] = ()) -> None:
        self._desktops = desktops
        self._apps = sorted(apps, key=lambda app: (app.name.casefold(), app.id))

    def names(self) -> list[str]:
        """The names of all applications, sorted, each once."""
        return list(dict.fromkeys(app.name for app in self._apps if app.in_menus))

    def find(self, query: str) -> App | None:
        """The application meant by a name, or None; never a weak guess."""
        wanted = plain(query)
        if not wanted:
            return None
        exact = self._of_kind(wanted, own=True)[:1]  # before another desktop's that is called just "Text Editor"
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
        """Names that look a little like the query, for an error message."""
        from rapidfuzz import fuzz, process

        found = process.extract(
            plain(query), self.names(), scorer=fuzz.partial_ratio, processor=plain, limit=limit, score_cutoff=50
        )
        return [name for name, _, _ in found]

    def _of_kind(self, wanted: str, *, own: bool = False) -> list[App]:
        """The applications of a kind ("settings", "terminal"), by the table in `configs/applications.toml`.

        Those of the running desktop come first; `own`: no others.
        """
        by_id = {app.id.casefold(): app for app in self._apps}
        kinds = load_config("applications.toml")["kinds"].values()
        named = [kind for kind in kinds if wanted in (plain(word) for word in kind["words"])]
        ids = [name for kind in named for name in (*self._own(kind), *([] if own else kind["desktop_files"]))]
        return [by_id[name.casefold()] for name in ids if name.casefold() in by_id]

    def _own(self, kind: Mapping[str, Any]) -> list[str]:
        """The applications of a kind that belong to the running desktop."""
        return [name for desktop, names in kind.get("own", {}).items() if desktop in self._desktops for name in names]

    def opener(self, types: Sequence[str], chosen: Sequence[str] = ()) -> App | None:
        """The application that opens files of a type; None for none.

        `types` is the type, then more general ones ("text/markdown", "text/plain"). `chosen` are the desktop files that
        the person or the system chose for it: the first that is installed counts.
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
        """The one settings panel whose name, also the untranslated one, has these words; none for several."""
        words = set(_singular(subject).split())
        panels = [(app, (app.name, *app.other_names)) for app in self._apps if not app.in_menus]
        found = [app for app, names in panels if any(words <= set(_singular(name).split()) for name in names)]
        return found if len(found) == 1 else []

    @staticmethod
    def _score(app: App, wanted: str) -> float:
        from rapidfuzz import fuzz

        names = [plain(name) for name in (app.name, *app.other_names)]
        program = plain(app.program.rsplit("/", 1)[-1])
        if wanted in names:
            return 95
        if wanted == program:
            return 93
        words = wanted.split()
        for name in names:
            if name.startswith(wanted + " "):
                return 88
            if set(words) <= set(name.split()):
                return 85
        keywords = {plain(keyword) for keyword in app.keywords}
        if wanted in keywords:
            return 75
        if len(words) > 1 and set(words) <= keywords | set(" ".join(names).split()):
            return 70
        closest = max((fuzz.ratio(wanted, name) for name in [*names, program]), default=0)
        return closest * 0.7 if closest >= 86 else 0


def takes_text(app: str, kind: Literal["primary", "completing"]) -> bool:
    """Whether an application takes text in a special way, by its class or identifier (configs/pasting.toml).

    "primary": terminals and the like, which paste by another chord, on X11 from PRIMARY. "completing": applications
    that complete, correct or pair what is typed while it is typed.
    """
    return any(re.search(one, app, re.IGNORECASE) for one in load_config("pasting.toml")[kind])
