"""What is known of the desktop when an action is judged, and who finds it out."""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint, Region
from agent.screen.outline import Element

#: What rules go by, each of which a desktop may be unable to tell, or to tell any more.
#: "windows" are which there are and which has the keyboard, "places" where they are.
Sense: TypeAlias = Literal["windows", "places", "words", "elements"]

#: What a rule may ask for or rule out (`given`, `unless`), besides what is seen: most of it follows from what the run
#: did before (`agent.safety.input_history`).
Fact: TypeAlias = Literal[
    "all is replaced",  # everything in the window was selected just before, and this takes its place
    "text was lost",  # much text that is not the run's own was taken out of a document of that application
    "own text",  # all that is in the document came from this run
    "one line",  # what is typed goes into a field of one line
    "a long text",  # it goes into a text of several lines
    "a text",  # it goes into a text, or hits one
    "a menu's title",  # it hits what only opens a menu
    "a form",  # two fields of one line or more were filled in since the window got its title, which tells the page
    "a link",  # it hits a link, which leads to a page
    "a button",  # it presses a push button, an item of a menu, or what is drawn like one
    "drawn as a button",  # what is written there stands in the middle of a field of its own
    "nameless",  # it presses a button, and nothing tells what it is called
    "in your words",  # the person's sentence names what is pressed
    "in your words, with its object",  # and something else that it names is seen there
    "a search",  # it goes into a field that is called a search, a filter or an address
    "a bare letter",  # one character, where no text has the focus: a shortcut of whatever it is
    "a harmless command",  # the line in a terminal that this is part of only reads, lists or changes the directory
    "a switch",  # it hits a check box, a switch and the like, which sends nothing by itself
    "a row",  # it goes to one of a list, a table or a tree, or to an icon; for a drag, it ends there
    "a value",  # it goes to a slider, a combo box and the like, which the wheel and the arrows change
    "own clipboard",  # the run copied or cut something itself
    "unread field",  # Enter sends what stands in a field, and nobody can read that
    "unnamed address",  # the text holds an address of a site that the person's sentence does not name
    "unseen choice",  # a menu was opened by keys, and this chooses something from it, nobody knows what
    "launcher",  # the desktop's own launcher was opened by a key just before
    "mnemonic",  # alt and one character: presses whatever has that character underlined
    "a dialog",  # the window is one
    "another window",  # what is dropped there was taken from another window
    "unknown focus",  # nothing tells what has the keyboard focus
    "end of a title bar",  # the pointer is where the button lies that closes a window
    "corner of a window",  # the same, for windows that draw their title bar themselves
    "not the system's",  # what would be started was not installed by the system, or came since the run began
    "may be a program",  # a file of that name in the usual folders would start something
    "named site",  # the person's instruction names the site of the page that is visited, or quotes its address
    "usual search",  # the page is that of the shipped search engine
    "carries much",  # its address holds much that the instruction does not
    "beside programs",  # programs lie in the folder that the window shows, and what is read there is no other file
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A window, as far as the platform tells."""

    app: str  # the name of its application's class, such as Firefox
    title: str  # a page can choose its own, so it never allows anything
    region: Region | None = None
    dialog: bool = False  # it asks something of whoever uses another window
    backdrop: bool = False  # the desktop below all windows


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of the desktop when an action is judged; None or "" where it is not known."""

    focused: Place | None = None  # the window that gets what is typed
    under: Place | None = None  # the window under the action's (last) point
    words: str = ""  # what is written where the action points; for keys, where the click just before them pointed
    #: What a click would hit where the action points, at both ends for a drag, and for what is typed the element that
    #: gets it. Names are a stranger's text, as words are: they make a rule ask, and never keep one from asking.
    elements: tuple[Element, ...] = ()
    origin: Place | None = None  # the window that a drag starts in
    #: Name, identifier and program of the application that would be opened; empty where none would be.
    opens: tuple[str, ...] | None = None
    #: What was typed into the focused window just before, so that a text in pieces is judged as a whole.
    typed: str = ""
    judged: int | None = None  # so many characters of it were judged as they stand; None for all
    #: What else may stand before and after the caret, where it is not known where that is, or how much was erased.
    standing: tuple[tuple[str, str], ...] = ()
    #: What would stand in the focused field when Enter sends it; None where nothing is sent, or it cannot be read.
    sent: str | None = None
    asked: str = ""  # what the dialog says that a press answers
    #: Why what lies there may be something else than what the model says it wants, as a clause.
    doubt: str = ""
    facts: frozenset[Fact] = frozenset()
    #: Those of them that rest on a page's word alone: they make rules ask, and never keep one from asking.
    claimed: frozenset[Fact] = frozenset()
    lost: frozenset[Sense] = frozenset()  # what was told when the run began, and is not any more
    untold: frozenset[Sense] = frozenset()  # what this desktop never tells

    @property
    def missing(self) -> frozenset[Sense]:
        """The information that is missing now: conditions of rules that need it count as met."""
        missing = self.lost | self.untold
        return missing | {"places"} if "windows" in missing else missing


UNKNOWN = Situation()


class Surroundings(Protocol):
    """Looks at the desktop for the policy. May block: called on a worker."""

    def of(self, action: Action[DesktopPoint]) -> Situation:
        """What is known where this action would land; never raises for what cannot be known."""

    def glance(self, action: Action[DesktopPoint]) -> Situation:
        """Only what the action would hit, and in which window; the same bounds hold."""

    def did(self, action: Action[DesktopPoint]) -> None:
        """Note that the action judged last was carried out, possibly as the person changed it."""

    def news(self) -> list[str]:
        """Return new warnings about lost information, as sentences for the person; each once."""
