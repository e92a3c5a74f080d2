"""The tasks of an evaluation: what is said, on which desktop, and what must hold afterwards."""

import hashlib
import json
import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

#: Classes of tasks that may expect nothing: nothing may change then, and the run may not say that it is done.
REFUSED = ("refuse", "hostile", "stop")


def _compiled(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression ({error})") from error
    return pattern


def _in_home(paths: str) -> str:
    """Check paths in the home with | between: the sandbox isolates commands, but files are written from outside."""
    for path in map(PurePosixPath, paths.split("|")):
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{paths!r} leaves the home")
    return paths


Pattern = Annotated[str, AfterValidator(_compiled)]
HomePaths = Annotated[str, AfterValidator(_in_home)]


class _Table(BaseModel):
    """A table of a task file: other fields than these are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Expect(_Table):
    """What must hold afterwards, by the desktop's own state. Values that are lists name alternatives."""

    #: "xfconf CHANNEL /PROPERTY", "gsettings SCHEMA KEY" (or "SCHEMA:PATH KEY"), "kde FILE/GROUP/KEY": value as the
    #: desktop's tools print it ("/regex/" for anything that fits); "" for a property that is not set
    settings: dict[str, str | list[str]] = {}
    #: path in the home: its text, true (it is there), false (it is not) or {has = "regex"}. A folder's path ends in /.
    #: Of several paths with | between, one will do.
    files: dict[HomePaths, str | bool | dict[str, Pattern]] = {}
    #: a command for the shell: what it prints afterwards, or {has = "regex"}
    outputs: dict[str, str | dict[str, Pattern]] = {}
    windows: list[Pattern] = []  # of "class|title|states"; each must match a window
    no_windows: list[Pattern] = []  # no window may match any of these
    active: Pattern = ""  # of the focused window's "class|title|states"
    clipboard: str | None = None
    #: {app, role, name, text (regexes), checked, value, selected, exists}: read from the accessibility trees
    tree: list[dict[str, Any]] = []

    @property
    def empty(self) -> bool:
        """Return whether nothing is said to hold."""
        return self == Expect()

    @property
    def paths(self) -> list[str]:
        """Return all paths that are named, alternatives included."""
        return [path for paths in self.files for path in paths.split("|")]


class PersonStep(_Table):
    """What the person does while the run is under way."""

    step: int = Field(ge=1)  # before this step
    say: str = ""  # a message to the model
    does: str = ""  # a shell command on the desktop
    stops: bool = False  # stops the run


class Person(_Table):
    """The person during the run. Questions that are not foreseen get no answer."""

    answers: dict[Pattern, str] = {}  # regex of a question: the reply
    approves: bool = False  # what the policy asks about
    at: list[PersonStep] = []


class EvalTask(_Table):
    """One task and all that is needed to judge it."""

    id: str = Field(pattern=r"^[^\s#/]+$", description="An id has no spaces, # or /.")
    say: str = Field(min_length=1, description="say is the sentence.")
    cls: str = Field(alias="class", min_length=1, description="A class groups tasks in the report.")
    expect: Expect = Expect()
    #: kinds of sandboxes whose windows can be listed from outside (X11)
    session: Literal["xfce", "gnome", "kde", "mate", "cinnamon", "bare"] = "xfce"
    size: str = "1920x1080"
    locale: str = ""
    setup: list[str] = []  # shell commands before anything is opened (settings)
    files: dict[HomePaths, str] = {}  # made in the home; a path that ends in / is a folder
    pages: list[HomePaths] = []  # files of the folder `pages` beside the tasks, put into the home
    open: list[str] = []  # commands; each one's window is waited for
    after: list[str] = []  # shell commands once all are open
    paused: list[str] = []  # names of processes that get SIGSTOP before the run
    may: list[Pattern] = []  # further changes ("KIND NAME") that do no harm
    watch: list[Pattern] = []  # applications whose controls must stay as they are otherwise
    approve: Literal["never", "risky", "ask"] = "never"
    person: Person = Person()
    reveal: list[str] = []  # shell commands after the run that make programs save what the judge reads
    by_hand: list[str] = []  # shell commands that reach the expected state, if none can be derived

    @property
    def must_refuse(self) -> bool:
        """Return whether nothing may be done."""
        return self.expect.empty

    @property
    def digest(self) -> str:
        """Return a hash of the task."""
        return hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()[:16]
