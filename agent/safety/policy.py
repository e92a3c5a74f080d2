"""What the model may do without asking: rules outside the model, in a file a person can read and change.

Text on a screen can talk to a model, so the model's own judgement is no protection.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

from agent.actions import TOUCHING, Action, HoldKeys, OpenApp, PressKeys, TypeText, to_json
from agent.configs import load_config
from agent.errors import UsageError
from agent.geometry import DesktopPoint
from agent.keys import chord

ApproveMode: TypeAlias = Literal["ask", "risky", "never"]
APPROVE_MODES: tuple[ApproveMode, ...] = get_args(ApproveMode)

#: The types of actions that touch the desktop, as `actions.to_json` names them: all that a rule can speak of.
_ACTIONS = frozenset({"click", "long_press", "move", "drag", "scroll", "type", "key", "hold", "open"})


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's decision.

    Args:
        allowed: whether the action may be carried out.
        by: who or what decided.
        note: what to do instead, for the model.
        always: the same scope need not be asked about again in this session.
        instead: the action as the person changed it; carried out in place of the model's.
    """

    allowed: bool
    by: str
    note: str = ""
    always: bool = False
    instead: Action[DesktopPoint] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """Why a person is asked about an action.

    Args:
        reason: as a clause, naming the rule.
        scope: what "always" would allow, as words that a person can judge, for example "typing into xfce4-terminal".
    """

    reason: str
    scope: str


@dataclass(frozen=True, slots=True)
class Place:
    """A window, as far as the platform tells."""

    app: str  # the class part of WM_CLASS on X11
    title: str


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of the desktop when an action is judged; None or "" where it is not known.

    Args:
        focused: the window that gets what is typed.
        under: the window under the action's (last) point.
        words: what is written where the action points.
    """

    focused: Place | None = None
    under: Place | None = None
    words: str = ""


UNKNOWN = Situation()


class Surroundings(Protocol):
    """Looks at the desktop for the policy. May block: called on a worker."""

    def of(self, action: Action[DesktopPoint]) -> Situation:
        """What is known where this action would land; never raises for what cannot be known."""
        ...


class Grants:
    """The scopes that a person allowed for good, in one session. A question without a scope is always asked."""

    def __init__(self) -> None:
        self._scopes: set[tuple[str, str]] = set()

    def add(self, question: Question) -> None:
        """Do not ask this again."""
        if question.scope:
            self._scopes.add((question.reason, question.scope))

    def allow(self, question: Question) -> bool:
        """Whether this was allowed for good: for the same reason, in the same scope."""
        return (question.reason, question.scope) in self._scopes


class Approver(Protocol):
    """Asks a person."""

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """The person's decision on one action.

        Raises:
            EnvironmentLacksError: there is nobody to ask.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: an action of this type needs a person; only with one of these keys or texts, where there are any."""

    name: str
    action: str
    reason: str
    keys: tuple[frozenset[str], ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()

    def matches(self, action: Action[DesktopPoint]) -> bool:
        """Whether the rule speaks of this action."""
        kind = to_json(action)["type"]
        if kind != self.action and (kind, self.action) != ("hold", "key"):  # a key that is held was pressed first
            return False
        match action:
            case PressKeys(keys) | HoldKeys(keys):
                pressed = {"enter" if key == "kp_enter" else key for key in keys}
                return not self.keys or any(chord <= pressed for chord in self.keys)
            case TypeText(text) | OpenApp(text):
                return not self.patterns or any(pattern.search(text) for pattern in self.patterns)
        return True


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides whether a person must be asked first."""

    mode: ApproveMode
    rules: tuple[Rule, ...]

    @classmethod
    def load(cls, mode: str, path: Path | None = None) -> "Policy":
        """The policy of a file, or the shipped one.

        Raises:
            UsageError: there is no such mode, or the file is not a policy.
        """
        known = next((name for name in APPROVE_MODES if name == mode), None)
        if known is None:
            raise UsageError(f"{mode!r} is no way to approve.", f"Choose one of: {', '.join(APPROVE_MODES)}.")
        if path is None:
            return cls(known, read_rules(load_config("policies/default.toml"), "the shipped policy"))
        import tomllib

        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"The policy {path} cannot be read: {error}.", "See docs/safety.md for its form."
            ) from error
        return cls(known, read_rules(data, str(path)))

    def question(self, action: Action[DesktopPoint], situation: Situation = UNKNOWN) -> Question | None:
        """Why a person must be asked before this action; None when it may go ahead."""
        if self.mode == "never" or not isinstance(action, TOUCHING):
            return None
        scope = _scope(action, situation)
        if self.mode == "ask":
            return Question("every action is to be approved", scope)
        rule = next((rule for rule in self.rules if rule.matches(action)), None)
        return None if rule is None else Question(f"{rule.reason} (rule “{rule.name}”)", scope)


def _scope(action: Action[DesktopPoint], situation: Situation) -> str:
    """What an "always" would allow: the kind of action, in the application that gets it."""
    focused = f" in {situation.focused.app}" if situation.focused and situation.focused.app else ""
    under = f" in {situation.under.app}" if situation.under and situation.under.app else ""
    match action:
        case TypeText():
            return f"typing{focused}"
        case PressKeys(keys) | HoldKeys(keys):
            return f"pressing {'+'.join(keys)}{focused}"
        case OpenApp(name):
            return f"opening {name}"
    kind = {"click": "clicking", "long_press": "pressing", "drag": "dragging", "scroll": "scrolling"}
    return f"{kind.get(to_json(action)['type'], 'moving the pointer')}{under}"


def read_rules(data: Mapping[str, Any], where: str) -> tuple[Rule, ...]:
    """The rules of a parsed policy file. Raises UsageError naming the rule that is wrong."""
    return tuple(_read_rule(entry, f"rule {number} of {where}") for number, entry in enumerate(_rules(data, where), 1))


def _rules(data: Mapping[str, Any], where: str) -> Sequence[Mapping[str, Any]]:
    rules = data.get("rules", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise UsageError(f"In {where}, [[rules]] must be tables.", "See docs/safety.md for its form.")
    return rules


def _read_rule(entry: Mapping[str, Any], where: str) -> Rule:
    try:
        rule = Rule(
            name=str(entry["name"]),
            action=str(entry["action"]),
            reason=str(entry["reason"]),
            keys=tuple(_read_chord(written) for written in _list(entry, "keys")),
            patterns=tuple(re.compile(pattern, re.IGNORECASE) for pattern in _list(entry, "patterns")),
        )
        _check_rule(rule)
    except KeyError as error:
        raise UsageError(f"In {where}, {error} is missing.", "A rule needs name, action and reason.") from error
    except (TypeError, ValueError, re.error) as error:  # ValueError also from an unknown key
        raise UsageError(f"In {where}, something is wrong: {error}.", "See docs/safety.md for its form.") from error
    return rule


def _list(entry: Mapping[str, Any], name: str) -> list[Any]:
    value = entry.get(name, [])
    if not isinstance(value, list):
        raise TypeError(f"{name} must be a list")
    return value


def _read_chord(written: Any) -> frozenset[str]:
    """A chord as a person may write it, a list of names, in canonical names."""
    if not isinstance(written, list) or not written:
        raise TypeError('a chord of keys is a list of names, such as ["ctrl", "w"]')
    return frozenset(chord([str(name) for name in written]))


def _check_rule(rule: Rule) -> None:
    """Raise ValueError for a rule that could never match: it would look like protection and be none."""
    if rule.action not in _ACTIONS:
        raise ValueError(f"{rule.action!r} is no action (actions are: {', '.join(sorted(_ACTIONS))})")
    if rule.keys and rule.action not in ("key", "hold"):
        raise ValueError(f"keys say nothing about the action {rule.action!r}")
    if rule.patterns and rule.action not in ("type", "open"):
        raise ValueError(f"patterns say nothing about the action {rule.action!r}")
