"""The names of things on the current desktop: English labels with the applications' own translations.

They come from the gettext catalogues (`.mo` files) in the desktop's packages, which are read once and on demand.
Names of applications come from their `.desktop` files instead, and those of themes from `index.theme`.
"""

import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from gettext import GNUTranslations
from itertools import takewhile
from pathlib import Path

from agent.core.languages import languages_of
from agent.desktop.apps.linux import application_folders, section
from agent.desktop.linux.places import data_dirs, data_home
from agent.literal.vocabulary.places import Desktop, Place, desktop_named
from foundation.configs import load_config

#: Folders of gettext catalogues.
_FOLDERS = (Path("/usr/share/locale"), Path("/usr/local/share/locale"), Path("/usr/share/locale-langpack"))
#: A larger catalogue is not read. The German catalogue of GNOME Settings has 400 KB and 3,000 messages.
_MOST_BYTES = 8_000_000
#: Most characters of a label; longer messages are ignored.
_LONGEST = 120
_MNEMONIC = re.compile(r"\s?\([_&](\w)\)")  # in Chinese and Japanese
#: Most translations tried for one label.
_MOST_TRANSLATIONS = 6
#: A placeholder for another text in a message, and the least letters that a message with placeholders must have.
_PLACE, _LEAST_LETTERS = re.compile(r"%(?:\d\$)?[sdiu]"), 4


def other_languages(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the languages that are wanted before English, best first."""
    return tuple(takewhile(lambda tag: not tag.startswith("en"), languages_of(environ)))


def labels_in(label: str, desktop: Desktop, languages: Sequence[str]) -> tuple[str, ...]:
    """Return the label and its translations on a desktop."""
    if not languages:
        return (label,)
    wanted = bare(label)
    catalogues = (*_catalogues(desktop, tuple(languages)), _theme_names(tuple(languages)))
    found = [text for catalogue in catalogues for text in catalogue.get(wanted, ())]
    found += _around_other_texts(label, desktop, tuple(languages))
    return tuple(dict.fromkeys([label, *found]))[: 1 + _MOST_TRANSLATIONS]


def _around_other_texts(label: str, desktop: Desktop, languages: tuple[str, ...]) -> Iterator[str]:
    """Yield the translations of a label that is a message with places for other texts: 'Rename "a.txt"'.

    A star of the label stands for any text.
    """
    for pattern, loose, shown in _composed(desktop, languages):
        if found := pattern.fullmatch(label):
            yield from (_filled(text, found.groups()) for text in shown)
        elif "*" in label and fnmatchcase(loose, label.casefold()):
            yield from (_filled(text, ()) for text in shown)


def _filled(message: str, texts: Sequence[str]) -> str:
    """Fill the places of a message with these texts, in order. Places that are left get a star."""
    rest = iter(texts)
    return _PLACE.sub(lambda _: next(rest, "*"), message)


@cache
def _composed(desktop: Desktop, languages: tuple[str, ...]) -> list[tuple[re.Pattern[str], str, Sequence[str]]]:
    """Return the messages with places: as a pattern, with a star in each place, and their translations."""
    found = []
    for catalogue in _catalogues(desktop, languages):
        for message, shown in catalogue.items():
            literal = _PLACE.split(message)
            if len(literal) < 2 or sum(map(str.isalpha, "".join(literal))) < _LEAST_LETTERS:
                continue
            pattern = re.compile("(.+)".join(map(re.escape, literal)), re.IGNORECASE)
            found.append((pattern, _PLACE.sub("*", message), shown))
    return found


def application_names(desktop_file: str, languages: Sequence[str]) -> tuple[str, ...]:
    """Return the names of an application or settings panel: in those languages, then in English.

    Empty if it is not installed. `desktop_file` is without ".desktop".
    """
    if re.fullmatch(r"[\w.+-]{1,120}", desktop_file) is None:
        return ()
    paths = (folder / f"{desktop_file}.desktop" for folder in application_folders(os.environ))
    entry = next(filter(None, (section(path, "Desktop Entry") for path in paths)), {})
    keys = (*(f"Name[{language}]" for language in languages), "Name")
    return tuple(dict.fromkeys(entry[key] for key in keys if key in entry))


@cache
def _theme_names(languages: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    """Return the names of themes of windows, icons and pointers, as `read_catalogue` does."""
    labels: dict[str, list[str]] = {}
    for folder in (data_home(os.environ), *data_dirs(os.environ)):
        for kind, group in (("themes", "X-GNOME-Metatheme"), ("themes", "Desktop Entry"), ("icons", "Icon Theme")):
            for path in sorted(folder.glob(f"{kind}/*/index.theme")):
                entry = section(path, group) or {}
                if "Name" in entry:
                    labels[bare(entry["Name"])] = [entry[key] for one in languages if (key := f"Name[{one}]") in entry]
    return labels


@cache
def _catalogues(desktop: Desktop, languages: tuple[str, ...]) -> tuple[Mapping[str, Sequence[str]], ...]:
    """Return the catalogues of the desktop's packages, then those named after an installed application."""
    installed = (
        path.stem.rpartition(".")[2].casefold()
        for folder in application_folders(os.environ)
        for path in sorted(folder.glob("*.desktop"))
    )
    paths = (
        folder / language / "LC_MESSAGES" / f"{domain}.mo"
        for domain in dict.fromkeys([*load_config(f"places/{desktop}.toml")["catalogues"], *installed])
        for language in languages
        for folder in _FOLDERS
    )
    return tuple(read_catalogue(path) for path in paths if path.is_file())


def read_catalogue(path: Path) -> Mapping[str, Sequence[str]]:
    """Read a catalogue: normalized English label to translations as shown. Empty if the file is broken or too large."""
    labels: dict[str, list[str]] = {}
    try:
        if path.stat().st_size > _MOST_BYTES:
            return {}
        with path.open("rb") as file:
            messages = vars(GNUTranslations(file))["_catalog"]  # look-ups need a message's exact mnemonic and context
    except (OSError, struct.error, ValueError, LookupError):
        return {}
    for message, translation in messages.items():
        original, number = message if isinstance(message, tuple) else (message, 0)
        original = original.rpartition("\x04")[2]  # without its msgctxt
        if number or not original or not translation or max(len(original), len(translation) / 2) > _LONGEST:
            continue
        known = labels.setdefault(bare(original), [])
        # Chinese and Japanese mnemonics, "名前(_N)": toolkits show them as "名前(N)", or leave them out.
        for text in (shown(translation), shown(_MNEMONIC.sub(r"(\1)", translation))):
            if text not in known:
                known.append(text)
    return labels


def shown(text: str) -> str:
    """Return a message as it is shown: without markup and mnemonic markers (GTK's and Qt's)."""
    if "<" in text:
        text = re.sub(r"<[^>]{1,40}>", "", text)
    if "_" in text or "&" in text:
        text = _MNEMONIC.sub("", text)
        text = re.sub(r"_(?=\S)|&(?=\w)", "", text.replace("__", "\x00").replace("&&", "\x01").replace("&amp;", "\x01"))
        text = text.replace("\x00", "_").replace("\x01", "&")
    return text.strip()


def bare(text: str) -> str:
    """Return a label in lower case, without markup, mnemonic markers, and dots or a colon at its end."""
    return " ".join(shown(text).rstrip(" .…:").casefold().split())


@dataclass(frozen=True, slots=True)
class Names:
    """The names of things on one desktop."""

    desktop: Desktop | None = None  # None if there is no table for it
    languages: tuple[str, ...] = ()  # of its applications, best first; empty for English
    _known: dict[str, Sequence[str]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def for_environment(cls, environ: Mapping[str, str]) -> "Names":
        """Return the names for the desktop and language in environment variables."""
        return cls(desktop_named(environ.get("XDG_CURRENT_DESKTOP", "")), other_languages(environ))

    def of(self, name: str) -> Sequence[str]:
        """Return the name, then its translations."""
        if not self.languages or self.desktop is None or not name:
            return (name,)
        if name not in self._known:
            self._known[name] = labels_in(name, self.desktop, self.languages)
        return self._known[name]

    def of_window(self, place: Place) -> Sequence[str]:
        """Return the possible titles of a place's window."""
        return tuple(dict.fromkeys([*self.of(place.window), *application_names(place.desktop_file, self.languages)]))
