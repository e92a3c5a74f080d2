"""What is known about the desktop when an action is judged, and the protocol for finding it out."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent.core.geometry import DesktopPoint, Region
from agent.screen.outline import Element

#: Kinds of information that rules use. A desktop may never provide one, or stop providing it. "windows" means which
#: windows exist and which has the focus; "places" means where they are.
Sense: TypeAlias = Literal["windows", "places", "words", "elements"]

#: Facts that a rule can require or exclude (`given`, `unless`). Some follow from the run's earlier actions
#: (`agent.safety.input_history`).
Fact: TypeAlias = Literal[
    "all is replaced",  # everything in the window was just selected, and this replaces it
    "text was lost",  # much text that the run did not write was deleted in that application
    "own text",  # the whole document was written by this run
    "one line",  # it is typed into a single-line field
    "a long text",  # it is typed into a multi-line text
    "a text",  # it is typed into a text element, or hits one
    "a menu's title",  # it hits an element that only opens a menu
    "a form",  # a long text or at least two single-line fields were filled in on this page (window title)
    "a link",  # it hits a link, which leads to a page
    "another address",  # its text is the address of another site than it leads to
    "another site",  # it leads to another site than the page's
    "opens choices",  # it hits an element whose states say that it opens or folds something: a menu button, an expander
    "a button",  # it presses a button, a menu item, or something drawn like one
    "drawn as a button",  # the words there are centred in a small area of their own
    "drawn apart",  # the letters of its caption are drawn apart, or below each other
    "nameless",  # it presses a button whose name is unknown
    "nothing told",  # neither an element nor a word is known there
    "typed there",  # the run typed a text into that window just before
    "only read",  # the user's instruction only asks something, or to find, open or show something
    "in your words",  # the user's instruction names what is pressed
    "in your words, with its object",  # and something else that the instruction names is visible there
    "a search",  # it is typed into a field named as a search, a filter or an address
    "a bare letter",  # one character without a focused text: likely a shortcut
    "a harmless command",  # its terminal line only reads, lists or changes the directory
    "a switch",  # it hits a check box, a switch or the like, which submits nothing
    "a row",  # it goes to an item of a list, table or tree, or an icon; a drag ends there
    "a value",  # it goes to a slider, a combo box or the like, which wheel and arrows change
    "something stands there",  # the field that Enter submits is not empty, or cannot be read
    "secrets come out",  # an export of secrets was chosen just before
    "replaces text",  # the dialog finds and replaces words of a text
    "copied elsewhere",  # the run copied the clipboard's content in another window
    "own clipboard",  # the run itself copied or cut the clipboard's content
    "unread field",  # Enter submits a field whose content cannot be read
    "in pieces",  # the run wrote it in several pieces, or by other keys
    "unnamed address",  # the text contains an address of a site that the instruction does not name
    "unseen choice",  # a menu was opened by keys, and this chooses an unknown item from it
    "launcher",  # the desktop's launcher was just opened by a key
    "mnemonic",  # alt and one character: presses the element with that mnemonic
    "a dialog",  # the window is a dialog
    "a question",  # it answers a dialog, drawn as a window or inside one
    "named in the question",  # a question of the dialog has the caption of the button: "Close board?" and "Close"
    "a document",  # the window shows a document of an office program, viewer or player; its title is a file's name
    "of an ordinary kind",  # by its categories, the application is a game, or for documents, pictures, sound ...
    "a strange language",  # the text of the dialog that is answered has hardly a known word
    "another window",  # the drag started in another window
    "unknown focus",  # it is unknown which element has the keyboard focus
    "end of a title bar",  # the pointer is where a window's close button is
    "corner of a window",  # the same, for windows that draw their title bar themselves
    "not the system's",  # the program is not installed by the system, or is newer than the run
    "may be a program",  # a file of that name in the usual folders would be started
    "named site",  # the instruction names the visited page's site, or quotes its address
    "usual search",  # the page is the shipped search engine's
    "carries much",  # the address contains much data that is not in the instruction
    "beside programs",  # the shown folder contains programs, and the target may be one of them
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A window, as far as the platform describes it."""

    app: str  # its application's class, such as Firefox
    title: str  # chosen by the page, so it never allows anything
    region: Region | None = None
    dialog: bool = False  # a dialog of another window
    backdrop: bool = False  # the desktop background
    site: str = ""  # of the page that a browser shows there, as the browser reports it
    window: Hashable = None  # the desktop's identifier of the window; None if unknown


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known about the desktop when an action is judged. None or "" means unknown."""

    focused: Place | None = None  # the window that receives typed text
    under: Place | None = None  # the window under the action's (last) point
    words: str = ""  # the words at the action's target; for keys, at the preceding click's target
    #: The elements that the action would hit: at both ends for a drag; for typing, the element that receives the text.
    #: Names and words are untrusted: they can make a rule ask, but never prevent it from asking.
    elements: tuple[Element, ...] = ()
    origin: Place | None = None  # the window that a drag starts in
    #: Name, identifier and program of the application that would be opened; empty if there is none.
    opens: tuple[str, ...] | None = None
    #: Text before the caret: as read in the focused field, or else what the run typed into the window lately.
    typed: str = ""
    rest: str = ""  # text behind the caret, as read
    read: bool = False  # whether both were read; in a terminal, only the line behind its prompt is read
    #: Content of the focused field that Enter would submit; None if nothing is submitted or it cannot be read.
    sent: str | None = None
    fields: tuple[str, ...] = ()  # contents of the fields of the page or dialog whose button is pressed
    unjudged: tuple[str, ...] = ()  # parts of `sent` and `fields` not judged in this form yet
    asked: str = ""  # text of the dialog that a press answers
    #: For Enter: the situation of a click on the button that the window takes for the answer; None if unknown.
    default: "Situation | None" = None
    #: Why the target may differ from what the model says it wants, as a clause.
    doubt: str = ""
    facts: frozenset[Fact] = frozenset()
    #: The facts that rest on a page's word alone: they can make rules ask, but never prevent one from asking.
    claimed: frozenset[Fact] = frozenset()
    lost: frozenset[Sense] = frozenset()  # information that was available when the run began
    untold: frozenset[Sense] = frozenset()  # information that this desktop never provides
    words_at: DesktopPoint | None = None  # the middle of the words at the (last) point; they may belong to a neighbour
    described: Element | None = None  # the element of the outline, as the model saw it, that the (last) point lies in

    @property
    def missing(self) -> frozenset[Sense]:
        """The information that is missing now: conditions of rules that need it count as met."""
        missing = self.lost | self.untold
        return missing | {"places"} if "windows" in missing else missing


UNKNOWN = Situation()
