"""Decides what the model may do without approval, by rules outside the model in a file that users can edit.

Text on the screen can influence a model, so the model's own judgement is no protection.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

from agent.core.actions import (
    TOUCHING,
    TYPING,
    Action,
    CallTool,
    Click,
    Drag,
    HoldKeys,
    OpenApp,
    PressKeys,
    TypeText,
    VisitPage,
    shorten,
    to_json,
)
from agent.core.geometry import DesktopPoint
from agent.safety.addresses import site_of
from agent.safety.policy_rules.disclosure import Leaving
from agent.safety.policy_rules.policy_file import load_policy
from agent.safety.policy_rules.rule import Allowed, Rule
from agent.safety.situation import UNKNOWN, Place, Sense, Situation
from foundation.errors import UsageError
from foundation.foreign_text import printable

#: The actions that a policy judges: those that act on the desktop, and tool calls, which act outside it.
JUDGED = (*TOUCHING, CallTool)

#: Possible answers: yes; yes, with changes; no; no, and skip it; no, and do something else instead.
PersonAnswer: TypeAlias = Literal["allowed", "changed", "refused", "skipped", "told"]
ApproveMode: TypeAlias = Literal["ask", "risky", "never"]
APPROVE_MODES: tuple[ApproveMode, ...] = get_args(ApproveMode)


@dataclass(frozen=True, slots=True)
class Approval:
    """The user's decision about an action."""

    allowed: bool
    by: str  # who decided
    note: str = ""  # what to do instead, for the model
    always: bool = False  # do not ask about the same scope again in this session
    instead: Action[DesktopPoint] | None = None  # the action as the user changed it, to carry out instead
    skip: bool = False  # not allowed; the model continues with the next thing

    @property
    def answer(self) -> PersonAnswer:
        """The kind of the decision."""
        if self.allowed:
            return "allowed" if self.instead is None else "changed"
        return "skipped" if self.skip else "told" if self.note else "refused"


#: Whom a question comes from: rules of the policy; the setting that every action is to be approved; the model's own
#: service; or, where none of these asks, the person who paused the run or goes through it step by step.
Asker: TypeAlias = Literal["rules", "every action", "service", "paused", "step"]


@dataclass(frozen=True, slots=True)
class Question:
    """Why an action needs approval."""

    reason: str  # as a clause, naming the rule
    scope: str  # what "always" would allow, in words: "typing into xfce4-terminal"
    asker: Asker = field(default="rules", compare=False)
    #: What the rules matched in the text to type, as they read it. It must be shown before approval.
    matched: tuple[str, ...] = field(default=(), compare=False)
    reasons: tuple[str, ...] = field(default=(), compare=False)  # the parts of `reason`, one per rule
    situation: Situation = field(default=UNKNOWN, compare=False)  # what is known about its target

    @property
    def held(self) -> bool:
        """Whether it is asked only because the person paused the run or steps through it."""
        return self.asker in ("paused", "step")


@dataclass(slots=True)
class Grants:
    """The permanent permissions of one session: reasons, each in a scope."""

    _given: set[tuple[str, str]] = field(default_factory=set)

    def add(self, question: Question) -> None:
        """Allow every reason of a question in its scope."""
        self._given.update((reason, question.scope) for reason in question.reasons)

    def allow(self, question: Question) -> bool:
        """Whether all of a question's reasons were allowed in its scope, together or one after the other.

        A question without a scope is always asked.
        """
        given = all((reason, question.scope) in self._given for reason in question.reasons)
        return bool(question.scope) and bool(question.reasons) and given


class Approver(Protocol):
    """Asks the user."""

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Return the user's decision about an action.

        Raises:
            EnvironmentLacksError: there is nobody to ask.
        """


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides which actions need approval first."""

    mode: ApproveMode
    rules: tuple[Rule, ...]
    allowed: Allowed = Allowed()  # noqa: RUF009 -- frozen
    leaving: Leaving = Leaving()  # noqa: RUF009 -- frozen

    @classmethod
    def load(cls, mode: str, path: Path | None = None) -> "Policy":
        """Load a policy file, or the shipped policy for None.

        Raises:
            UsageError: there is no such mode, or the file is not a valid policy.
        """
        if mode not in APPROVE_MODES:
            raise UsageError(f"{mode!r} is no way to approve.", f"Choose one of: {', '.join(APPROVE_MODES)}.")
        if path is not None and str(path) in APPROVE_MODES and not path.is_file():
            raise UsageError(f"The policy {path} cannot be read.", f"Did you mean --approve {path}?")
        read = load_policy(path)
        return cls(mode, read.rules, read.allowed, read.leaving)

    def question(self, action: Action[DesktopPoint], situation: Situation = UNKNOWN) -> Question | None:
        """Return why this action needs approval, or None if it may proceed.

        Every matching rule is named: an action that was permanently allowed for one reason is asked about again for
        another.
        """
        if self.mode == "never" or not isinstance(action, JUDGED):
            return None
        matching = [rule for rule in self.rules if rule.matches(action, situation)]
        blind = [rule for rule in matching if rule.is_blind(action, situation)]
        known = [rule for rule in matching if rule not in blind]
        # "Not on the list" is a reason only if there is no more specific one.
        told = [rule for rule in known if not rule.is_default] or known
        named: dict[str, list[str]] = {}  # rules by their reasons, so that none is told twice
        for rule in told:
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
        for_good = (
            not blind
            and not situation.doubt
            and all(rule.always for rule in matching)
            and _is_placed(action, situation)
        )
        scope = printable(scope_of(action, situation)) if for_good else ""
        matched = (piece for rule in matching for piece in rule.finds(action, situation))
        found = tuple(dict.fromkeys(matched))
        return Question("; ".join(reasons), scope, asker, found, tuple(reasons), situation)


def _is_placed(action: Action[DesktopPoint], situation: Situation) -> bool:
    """Whether the target is known. If it is not, a permanent permission would apply everywhere."""
    place = situation.focused if isinstance(action, TYPING) else situation.under
    return isinstance(action, OpenApp | VisitPage | CallTool) or (place is not None and bool(place.app or place.title))


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
    return f"it is not known {since} {unknown}, which needs your eyes (rules {', '.join(names)}{more})"


_POINTING = {"click": "clicking", "long_press": "pressing", "drag": "dragging", "scroll": "scrolling",
             "move": "moving the pointer"}  # fmt: skip


def scope_of(action: Action[DesktopPoint], situation: Situation) -> str:
    """Describe what "always" would allow: the kind of action, its target and its application."""
    match action:
        case TypeText():
            return f"typing{_in(situation.focused, 'into')}"
        case PressKeys(keys) | HoldKeys(keys):
            return f"pressing {'+'.join(keys)}{_in(situation.focused)}"
        case OpenApp(name):
            return f"opening {_application(name, situation.opens)}"
        case VisitPage(url):
            return f"visiting pages of {shorten(site_of(url))}" if site_of(url) else ""
        case CallTool(name):
            return f"calling the tool {shorten(name)}, with any arguments"
        case Click(_, button, count):
            kind = f"{'' if button == 'left' else f'{button}-'}{'double-' if count == 2 else ''}clicking"
        case _:
            kind = _POINTING[to_json(action)["type"]]
    kind = "+".join([*getattr(action, "held", ()), kind])
    aim = _aim(situation)
    aim = f"{' to' if isinstance(action, Drag) else ''} {aim}" if aim else ""
    origin = f" from {situation.origin.app}" if situation.origin and situation.origin != situation.under else ""
    return f"{kind}{origin}{aim}{_in(situation.under)}"


def _aim(situation: Situation) -> str:
    """Return the target of an action: the words there, and the element's name if it differs."""
    read = " ".join(situation.words.split()).casefold()
    hit = [one.words for one in situation.elements if (one.name or one.label) and one.name.casefold() not in read]
    told = [shorten(situation.words)] if situation.words else []
    return " ".join((*told, *(f"({words})" for words in hit))) if told else " to ".join(hit)


def _in(place: Place | None, how: str = "in") -> str:
    if place is None:
        return ""
    if place.site:  # what is allowed on a page is allowed on its site, not on every site that this browser shows
        return f" {'on' if how == 'in' else how} {shorten(place.site)} in {place.app}"
    return f" {how} {place.app}" if place.app else f" {how} the window {shorten(place.title)}"


def _application(asked: str, opens: tuple[str, ...] | None) -> str:
    """Return the application's name, and its program if that has another name."""
    if not opens:
        return " ".join(asked.split())[:60]
    name, program = opens[0], opens[-1]
    return name if program.casefold() == name.casefold() else f"{name} ({program})"
