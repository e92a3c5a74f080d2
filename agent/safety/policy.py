"""Decides what the model may do without approval, by rules outside the model in a file that users can edit.

Text on the screen can influence a model, so the model's own judgement is no protection.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

from agent.core.actions import TOUCHING, TYPING, Action, CallTool, Click, OpenApp, VisitPage, shorten
from agent.core.geometry import DesktopPoint
from agent.safety.addresses import site_of
from agent.safety.policy_rules.policy_file import Leaving, load_policy
from agent.safety.policy_rules.rule import Allowed, Rule
from agent.safety.situation import UNKNOWN, Place, Sense, Situation
from agent.safety.targets import is_browser
from foundation.errors import UsageError
from foundation.foreign_text import printable

#: The actions that a policy judges: those that act on the desktop, and tool calls, which act outside it.
JUDGED = (*TOUCHING, CallTool)

#: Possible answers: yes; yes, with changes; no; no, and skip it; no, and do something else instead.
PersonAnswer: TypeAlias = Literal["allowed", "changed", "refused", "skipped", "told"]
ApproveMode: TypeAlias = Literal["ask", "risky", "never"]
APPROVE_MODES: tuple[ApproveMode, ...] = get_args(ApproveMode)
#: Who decided, if the person allowed it earlier in the run; the scope follows.
EARLIER = "you, before"


@dataclass(frozen=True, slots=True)
class Approval:
    """The user's decision about an action."""

    allowed: bool
    by: str  # who decided
    note: str = ""  # what to do instead, for the model
    always: bool = False  # do not ask again in the question's scope, for the rest of the run
    instead: Action[DesktopPoint] | None = None  # the action as the user changed it, to carry out instead
    skip: bool = False  # not allowed; the model continues with the next thing

    @property
    def answer(self) -> PersonAnswer:
        """The kind of the decision."""
        if self.allowed:
            return "allowed" if self.instead is None else "changed"
        return "skipped" if self.skip else "told" if self.note else "refused"


#: Who asks: rules of the policy, the setting that every action needs approval, or the model's own service. If none of
#: these asks: the person who paused the run or steps through it.
Asker: TypeAlias = Literal["rules", "every action", "service", "paused", "step"]


@dataclass(frozen=True, slots=True)
class Question:
    """Why an action needs approval."""

    reason: str  # as a clause, naming the rule
    scope: str  # what a permission for the rest of the run would allow, in words; "" if only once
    asker: Asker = field(default="rules", compare=False)
    #: What the rules matched in the text to type, as they read it. It must be shown before approval.
    matched: tuple[str, ...] = field(default=(), compare=False)
    reasons: tuple[str, ...] = field(default=(), compare=False)  # the parts of `reason`, one per rule
    situation: Situation = field(default=UNKNOWN, compare=False)  # what is known about its target
    place: Hashable = field(default=None, compare=False)  # where such a permission would hold

    @property
    def held(self) -> bool:
        """Whether the question is asked only because the person paused the run or steps through it."""
        return self.asker in ("paused", "step")


@dataclass(slots=True)
class Grants:
    """What the person allowed for the rest of one run: reasons, each at a place (a window, a site, an application)."""

    _given: set[tuple[str, Hashable]] = field(default_factory=set)

    def add(self, question: Question) -> None:
        """Allow every reason of a question at its place."""
        self._given.update((reason, question.place) for reason in question.reasons)

    def allow(self, question: Question) -> bool:
        """Whether all of a question's reasons were allowed at its place, together or one after the other.

        A question without a scope is always asked.
        """
        all_granted = all((reason, question.place) in self._given for reason in question.reasons)
        return bool(question.scope) and bool(question.reasons) and all_granted


class Approver(Protocol):
    """Asks the user."""

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Return the user's decision about an action. Raises EnvironmentLacksError: there is nobody to ask."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides which actions need approval first."""

    mode: ApproveMode
    rules: tuple[Rule, ...]
    allowed: Allowed = Allowed()  # noqa: RUF009 -- frozen
    leaving: Leaving = Leaving()  # noqa: RUF009 -- frozen

    @classmethod
    def load(cls, mode: str, path: Path | None = None) -> "Policy":
        """Load a policy file, or the shipped policy for None. Raises UsageError: no such mode, or no valid policy."""
        if mode not in APPROVE_MODES:
            raise UsageError(f"{mode!r} is not an approval mode.", f"Choose one of: {', '.join(APPROVE_MODES)}.")
        if path is not None and str(path) in APPROVE_MODES and not path.is_file():
            raise UsageError(f"The policy {path} cannot be read.", f"Did you mean --approve {path}?")
        read = load_policy(path)
        return cls(mode, read.rules, read.allowed, read.leaving)

    def question(self, action: Action[DesktopPoint], situation: Situation = UNKNOWN) -> Question | None:
        """Return why this action needs approval, or None if it may proceed.

        The question names every matching rule: an action allowed for one reason needs approval again for another. Enter
        in a dialog needs approval if a click on the dialog's default button does.
        """
        own = self._question(action, situation)
        if situation.default is None:
            return own
        button = situation.default.elements[-1]
        pressed = self._question(Click(button.box.middle), situation.default)
        if pressed is None or self.mode == "ask":
            return own
        reason = f"Enter presses {shorten(button.name)} here: {pressed.reason}"
        others = () if own is None else own.reasons
        scope = pressed.scope if own is None or own.scope else ""
        return replace(
            pressed, reason="; ".join([*others, reason]), reasons=(*others, reason), scope=scope, situation=situation
        )

    def _question(self, action: Action[DesktopPoint], situation: Situation) -> Question | None:
        if self.mode == "never" or not isinstance(action, JUDGED):
            return None
        matching = [rule for rule in self.rules if rule.matches(action, situation)]
        blind = [rule for rule in matching if rule.is_blind(action, situation)]
        known = [rule for rule in matching if rule not in blind]
        # "Not on the list" is a reason only if there is no more specific one.
        specific_rules = [rule for rule in known if not rule.is_default] or known[:1]
        named: dict[str, list[str]] = {}  # rules by their reasons, so that no reason appears twice
        for rule in specific_rules:
            named.setdefault(rule.why(action, situation), []).append(f"“{rule.name}”")
        reasons = [f"{why} ({'rules' if rules[1:] else 'rule'} {', '.join(rules)})" for why, rules in named.items()]
        if blind:
            reasons.append(_cannot_keep(blind, situation))
        if isinstance(action, CallTool) and not matching and not any(rule.excepts(action) for rule in self.rules):
            reasons.append("tools act outside of the desktop, and no rule excepts this one")
        if outside := self.allowed.objection(action, situation):
            reasons.append(outside)
        if situation.doubt:
            reasons.insert(0, situation.doubt)
        asker: Asker = "rules" if reasons else "every action"
        if self.mode == "ask":
            reasons.insert(0, "every action is to be approved")
        if not reasons:
            return None
        for_more = not blind and not situation.doubt and all(rule.always for rule in matching)
        place, scope = scope_of(action, situation, len(reasons)) if for_more else (None, "")
        matched = (piece for rule in matching for piece in rule.finds(action, situation))
        found = tuple(dict.fromkeys(matched))
        return Question("; ".join(reasons), scope, asker, found, tuple(reasons), situation, place)


#: The information that rules use, in words.
_TOLD: dict[Sense, str] = {
    "windows": "which window gets it", "places": "which window is there", "words": "what is written there",
    "elements": "what it hits",
}  # fmt: skip


def _cannot_keep(blind: Sequence[Rule], situation: Situation) -> str:
    """Explain which rules ask because information that they need is missing."""
    missing = situation.lost or situation.untold
    senses = missing - {"places"} if "windows" in missing else missing
    unknown = " and ".join(_TOLD[sense] for sense in sorted(senses))
    since = "now" if situation.lost else "on this desktop"
    names = [f"“{rule.name}”" for rule in blind[:3]]
    more = f" and {len(blind) - 3} more" if len(blind) > 3 else ""
    return f"it is not known {since} {unknown}, so please check it yourself (rules {', '.join(names)}{more})"


def scope_of(action: Action[DesktopPoint], situation: Situation, reasons: int = 1) -> tuple[Hashable, str]:
    """Return where a permission for the rest of the run would hold, and what it allows, in words.

    Both are empty if the place is not known: the permission would hold everywhere.
    """
    match action:
        case OpenApp(name):
            key: tuple[Hashable, ...] = ("open", *(situation.opens or (name,)))
            allows = f"opening {_application(name, situation.opens)}"
        case VisitPage(url):
            key = ("visit", site_of(url) or None)
            allows = f"visiting pages of {shorten(site_of(url))}"
        case CallTool(name):
            key = ("tool", name)
            allows = f"calling the tool {shorten(name)}, with any arguments"
        case _:
            ends = (situation.focused,) if isinstance(action, TYPING) else (situation.origin, situation.under)
            places = [place for place in ends if place is not None] or [Place("", "")]
            key = tuple(map(_key, places))
            location = " and ".join(dict.fromkeys(map(_here, places)))
            allows = f"actions asked for the same reason{'s' if reasons > 1 else ''} {location}"
    return (None, "") if None in key else (key, printable(f"{allows}, for the rest of the run"))


def _key(place: Place) -> Hashable:
    """Return the key that identifies a place later in the run; None if the place is not known.

    A browser's window shows many sites, so nothing can be allowed in it unless the browser reports the site.
    """
    if place.site:
        return place.app, place.site
    return None if place.window is None or is_browser(place) else (place.app, place.window)


def _here(place: Place) -> str:
    if place.site:
        return f"on {shorten(place.site)} in {place.app}"
    return f"in this {'dialog' if place.dialog else 'window'} of {place.app or shorten(place.title)}"


def _application(app_name: str, opens: tuple[str, ...] | None) -> str:
    """Return the application's name, and its program if that has another name."""
    if not opens:
        return " ".join(app_name.split())[:60]
    name, program = opens[0], opens[-1]
    return name if program.casefold() == name.casefold() else f"{name} ({program})"
