"""Other names of a thing on the current desktop, in the desktop's language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.literal.vocabulary.places import Desktop, Place, desktop_named
from agent.literal.vocabulary.translations import application_names, labels_in, languages_of


@dataclass(frozen=True, slots=True)
class Names:
    """The names of things on one desktop."""

    desktop: Desktop | None = None  # None if there is no table for it
    languages: tuple[str, ...] = ()  # of its applications, best first; empty for English
    _known: dict[str, Sequence[str]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def told(cls, environ: Mapping[str, str]) -> "Names":
        """Return the names for the desktop and language in environment variables."""
        return cls(desktop_named(environ.get("XDG_CURRENT_DESKTOP", "")), languages_of(environ))

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
