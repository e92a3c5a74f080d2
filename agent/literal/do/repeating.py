"""Does the steps of a recipe: each target has exactly the recorded name and role, in the recorded window.

What is missing is waited for and scrolled into view. A merely similar control is used only if a text model says that it
is the same thing. A step that cannot be done ends the run with its number.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf

from agent.core.changes import Change
from agent.literal import goals
from agent.literal.do.clicking import CLICKS
from agent.literal.do.keyboard import REPORTED, UnseenError, field_with, give_focus, type_text
from agent.literal.do.looking import Search
from agent.literal.do.now import Already, Done, Move, Now, Pursuit, Step, Steps, StuckError, agrees, until
from agent.literal.do.wheel import safe_spot
from agent.literal.do.windows import raise_window
from agent.literal.find.effects import is_on, new_changes, state_of
from agent.literal.find.finder import Found, without_twins
from agent.literal.find.recorded import Recorded, is_same
from agent.literal.find.scene import FIELDS
from agent.literal.goals import DESKTOP, Part, Question, Target, target_of, with_target
from agent.literal.language.wording import describe_goal, describe_target
from agent.literal.vocabulary.numbers import number_of
from agent.screen.outline import Element

#: Most waits for a missing target or window, most waits while the front window reports no elements, and seconds of
#: each wait. The accessibility tree of such a window is read again after ten seconds.
_MOST_WAITS, _MOST_LATE, _WAIT = 5, 16, 0.8
#: Seconds of the waits for expected changes.
_LATE = (0.2, 0.4, 0.8, 1.6)
#: Most things that a text model chooses from.
_MOST_OTHERS = 80
#: Roles of elements that take a text.
_INTO = FIELDS | {"spin button", "combo box"}
#: Of these, the roles whose text the tree reports, and spin buttons, whose text is not needed.
_TELLING = REPORTED | {"spin button"}


class _MissingError(StuckError):
    """The target is not there; `others` are the things of its kind in its window, or else in the front window."""

    def __init__(self, why: str, others: Sequence[Element], window: str) -> None:
        super().__init__(why)
        self.others, self.window = others, window


def repeat(now: Now, goal: goals.Repeat) -> Pursuit:
    """Do all steps, then check the expected changes."""
    known = now.changes
    done = chosen = Done("there are no steps", verified=False)
    for number, part in enumerate(goal.parts, 1):
        now.begun = len(now.moves)
        last = number == len(goal.parts) and not goal.expected
        try:
            try:
                done = yield from _do_until(now, part, last, *goal.parts[number : number + 1])
            except _MissingError as missing:
                done = yield from _do(now, (yield from _repaired(now, number, part, missing)), last=last)
        except StuckError as error:
            if not (isinstance(error, UnseenError) and goal.expected and target_of(part.goal) is None):
                words = str(error)
                words = words if words.startswith("I ") else f"{words[:1].lower()}{words[1:]}"
                raise StuckError(f"Step {number} of {len(goal.parts)}, {describe_goal(part.goal)}: {words}") from error
            # Some fields never report their text, such as a new folder's name in Nemo: the expected changes decide.
            done = Done("I typed the text, and nothing shows it", verified=False)
        chosen = done if isinstance(part.goal, goals.Click | goals.Toggle) else chosen
    if not goal.expected:
        return done
    return (yield from _check(now, goal.expected, known, chosen if isinstance(chosen, Already) else None))


def _repaired(now: Now, number: int, part: Part, missing: _MissingError) -> Steps[Part]:
    """Return step `number` with the target that the model names. Raises StuckError if it names none.

    Only things of the same kind and window are candidates. If a person can be asked, they decide. The model is asked
    while the first step, a wait, is carried out. It does not learn what the step types, which may be a secret.
    """
    goal = part.goal
    target = target_of(goal)
    if now.repairs is None or target is None or not missing.others:
        raise missing
    choices = {one.name: Target(one.name, one.role, inside=missing.window) for one in missing.others}
    words = f"type into {describe_target(target)}" if isinstance(goal, goals.Type) else describe_goal(goal)
    now.question = Question(number, words, choices)
    yield Step.wait(f"{missing}: ask the model what it is called now.", 0.2)
    found, outcome, now.question = now.repairs.get(number), now.question.outcome, None
    if found is None:
        raise StuckError(f"{missing}; {outcome}" if outcome else str(missing))
    if now.asks:
        question = f"{missing}. {outcome}. Shall I use {describe_target(found)}?"
        if not (yield from agrees("I ask whether that is right.", question)):
            del now.repairs[number]
            raise StuckError(f"{missing}; you did not agree to use {describe_target(found)}")
    return replace(part, goal=with_target(goal, found))  # type: ignore[arg-type]  # a goal of the same kind


def _check(now: Now, expected: Sequence[goals.Expected], known: Sequence[Change], already: Already | None) -> Pursuit:
    """Wait for the expected changes."""

    def shown() -> dict[goals.Expected, Change]:
        new = new_changes(known, now.changes)
        return {one: change for one in expected for change in new if _is_as_expected(now, change, one)}

    for seconds in _LATE:
        if len(shown()) < len(expected):
            yield Step.wait("The changes are not visible yet: wait.", seconds)
    found = shown()
    if already is not None and not found and all(one.kind == "setting" for one in expected):
        return Already(f"nothing was to be changed: {already.words}")
    if missing := [one for one in expected if one not in found]:
        text = "; ".join(f"{one.kind} {one.what} -> {one.becomes}" for one in missing)
        wanted = {one.what: one.becomes for one in missing if one.kind == "setting"}
        new = [one for one in new_changes(known, now.changes) if one.kind == "setting" and one.what in wanted]
        wrong = [one for one in new if (one.after or "") != wanted[one.what]]  # for example, a switch was on already
        but = f"this changed differently: {wrong[0]}; expected" if wrong else (
            "these expected changes are missing (perhaps made before):"
        )  # fmt: skip
        front = now.scene.front
        asks = f"; in front is the dialog “{front.title or front.app}”" if front is not None and front.dialog else ""
        return Done(f"all steps are done, but {but} {text}{asks}", verified=False)
    text = "; ".join(map(str, found.values()))
    return Done(text if len(found) == 1 else f"as expected: {text}")


def _is_as_expected(now: Now, change: Change, expected: goals.Expected) -> bool:
    """Whether a change is the expected one, also in the desktop's language: ~/Dokumente, [Arbeitsfläche 1, ...]."""
    if change.kind != expected.kind or not _alike(now, expected.what, change.what):
        return False
    if expected.kind == "setting":
        return _alike(now, expected.becomes, change.after or "")
    return expected.becomes == ("gone" if change.after is None else "written")


def _alike(now: Now, wanted: str, found: str) -> bool:
    """Whether a path, a list or a word is the wanted one, part by part, by the names of things on this desktop."""
    parts, others = (re.split(r"[/\[\],]\s*", text) for text in (wanted, found))
    return wanted == found or (
        len(parts) == len(others) and all(two in now.names.of(one) for one, two in zip(parts, others, strict=True))
    )


def _do_until(now: Now, part: Part, last: bool, following: Part | None = None) -> Pursuit:
    """Do one step. If its effect is what the following step needs, do not wait for a still screen.

    This only applies if the screen lacked that target before: a target that was there proves no effect, and may still
    move. If the action was left out because its target changed meanwhile, the step begins anew, once.
    """
    if following is not None and target_of(following.goal) is None:
        following = None  # no screen shows where keys will go
    steps, move, again = _do(now, part, last=last), None, False
    while True:
        try:
            step = next(steps) if move is None else steps.send(move)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a generator's result is untyped here
        if following is not None and step.main and not _can_begin(now, following):
            step = replace(step, until=partial(_can_begin, now, following))
        move = yield step
        if move.outdated and not again:
            steps, move, again = _do(now, part, last=last), None, True


def _can_begin(now: Now, part: Part) -> bool:
    """Return whether the current screen has a step's only target.

    OCR words may not have been read yet, so a typed text needs a field that reports its content.
    """
    target, types = target_of(part.goal), isinstance(part.goal, goals.Type)
    if target is None or target.picture:
        return False
    roles = _INTO if types else frozenset[str]()
    sure = _reachable(now, _recorded(now).matching(target, part.near, roles), roles)
    return len(sure) == 1 and "disabled" not in sure[0].states and (not types or sure[0].role in _TELLING)


def _do(now: Now, part: Part, *, last: bool) -> Pursuit:
    """Do one step. `last`: nothing after it shows whether it had an effect."""
    match part.goal:
        case goals.Open(name):
            return (yield from _shown(now, (yield Step.start(f"Open “{name}”.", name, main=True)), last))
        case goals.Wait(seconds):
            yield Step(f"Wait {seconds:g} s.", {"action": "wait", "seconds": seconds}, main=True)
            return Done(f"I waited {seconds:g} s", verified=False)
        case goals.Click():
            return (yield from _click(now, part.goal, part.near, last=last))
        case goals.Toggle():
            return (yield from _toggle(now, part.goal, part.near))
        case goals.Type(into=Target()):
            return (yield from _type_into(now, part.goal, part.near))
    yield from _in_front(now, part.window)
    match part.goal:
        case goals.Type():
            return (yield from type_text(now, part.goal))
        case goals.Press(keys):
            attempt = yield Step.press(f"Press {'+'.join(keys)}.", "+".join(keys), main=True)
            return (yield from _shown(now, attempt, last))
        case goals.Scroll(direction, notches):
            call: dict[str, object] = {"action": "scroll", "direction": direction, "amount": notches}
            if (spot := safe_spot(now.scene)) is not None:
                call["coordinate"] = now.point(*spot)
            yield Step(f"Scroll {direction}.", call, main=True)
            return Done(f"I scrolled {direction}", verified=False)
        case goals.Close():
            attempt = yield Step.press("Close the window.", "alt+f4", main=True)
            return (yield from _shown(now, attempt, True))


def _shown(now: Now, attempt: Move, last: bool) -> Pursuit:
    """Return what an action led to. Wait for it only after the last step: a next step waits for its own target."""
    if attempt.failure is not None:
        raise StuckError(attempt.failure)
    words = "No effect is visible yet: wait."
    if done := (yield from until(lambda: _effect(now, attempt), words, 2 if last else 0, 0.7)):
        return Done(done)
    return Done("all steps are done, but nothing shows that they took effect", verified=False)


def _effect(now: Now, attempt: Move) -> str:
    """Return what shows that an action took effect; "" for nothing. Keys can also move and resize windows."""
    if effects := now.effects_of(attempt):
        return effects.words
    before = {(one.title, one.app): one.box for one in attempt.scene.windows} if attempt.action == "key" else {}
    moved = [one for one in now.scene.windows if before.get((one.title, one.app), one.box) != one.box]
    return f"the window “{moved[0].title or moved[0].app}” has another size or place" if moved else ""


def _click(now: Now, goal: goals.Click, near: Sequence[str], *, last: bool) -> Pursuit:
    found = yield from _find(now, goal.target, near)
    action = "double_click" if goal.count > 1 else CLICKS[goal.button]
    words = f"{describe_target(goal.target)} is there: {action.replace('_', ' ')} it."
    attempt = yield now.click(words, found, action)
    if action != "click" or is_on(found) is None:
        return (yield from _shown(now, attempt, last))
    chosen = [one for one in _recorded(now).matching(goal.target, near) if is_on(one)]
    if is_on(found) and chosen:  # it was on before, so the click shows no other effect
        return Already(f"{state_of(chosen[0])} already")
    return Done(state_of(chosen[0])) if chosen else (yield from _shown(now, attempt, last))


def _toggle(now: Now, goal: goals.Toggle, near: Sequence[str]) -> Pursuit:
    """Click a switch unless it is in the wanted state, and check its state afterwards."""
    found = yield from _find(now, goal.target, near)
    if is_on(found) is goal.on:
        return Already(f"{state_of(found)} already")

    def switched() -> Done | None:
        matches = [one for one in _recorded(now).matching(goal.target, near) if is_on(one) is goal.on]
        return Done(state_of(matches[0])) if matches else None

    attempt = yield now.click(f"{state_of(found)}: click it.", found)
    if done := (yield from until(switched, "It has not changed yet: wait.", 3, 0.5)):
        return done
    if attempt.failure is None and not _recorded(now).matching(goal.target):
        return Done("it disappeared when it was clicked, as menu items do", verified=False)
    raise StuckError(attempt.failure or "it does not change when it is clicked")


def _type_into(now: Now, goal: goals.Type, near: Sequence[str]) -> Pursuit:
    """Focus a field unless it has the focus, and type into it."""
    assert goal.into is not None
    found = yield from _find(now, goal.into, near, _INTO)
    if goal.empty and (found.value or "").strip():
        raise StuckError(f"it was empty when this was recorded, and “{found.window or found.app}” holds a text")
    if "focused" not in found.states:
        yield from give_focus(now, found, describe_target(goal.into))
    if found.role == "spin button":  # it reports the number only when it loses the focus, in a later step
        if not any(map(str.isdigit, goal.text)):
            raise StuckError(f"“{goal.text}” is no number")
        number, (least, most) = number_of(goal.text), found.limits or (-inf, inf)
        if number is not None and not least <= number <= most:
            raise StuckError(f"it takes {least:g} to {most:g}, not {goal.text}")
        if goal.replace:
            yield Step.select_all()
        typed = yield Step.type(f"Type {goal.text}.", goal.text, main=True)
        return (yield from _shown(now, typed, last=False))
    done = yield from type_text(now, goals.Type(goal.text, None, goal.replace))
    took, meant = field_with(now, goal.text), _recorded(now).matching(goal.into, near, _INTO)
    if took is not None and meant and took not in meant:
        raise StuckError(f"the focus moved, and the text went into {took.role} “{took.name}”")
    return done


def _find(now: Now, target: Target, near: Sequence[str] = (), roles: frozenset[str] = frozenset()) -> Steps[Element]:
    """Return the element that a target means, after waiting for it and scrolling to it."""
    search = Search(now, target)
    waited, raised = 0, False
    while True:
        matches = _recorded(now).matching(target, near, roles)
        shown = [one for one in matches if "offscreen" not in one.states]
        sure = _reachable(now, matches, roles)
        if len(sure) == 1 and "disabled" not in sure[0].states:
            return sure[0]
        step: Step | None = None
        if waited >= 1 and not sure and not raised and (window := _recorded(now).covered(target.inside)) is not None:
            raised = True
            yield from raise_window(now, window)
            continue
        if matches and not shown:
            step = search.scroll_to(matches[0])
        elif waited < (_MOST_LATE if now.scene.is_late else _MOST_WAITS):
            waited += 1
            step = Step.wait(f"{describe_target(target)} is not ready to be used: wait.", _WAIT)
        elif not matches:
            step = search.further_down()
        if step is None:
            why = _why_not(now, target, matches, sure)
            raise StuckError(why) if matches else _missing(now, target, roles, why)
        search.latest = yield step


def _reachable(now: Now, matches: Sequence[Element], roles: frozenset[str]) -> list[Element]:
    """Return the elements that can be acted on. `roles` are field roles: a focused field needs no confirmed place."""
    shown = [one for one in matches if "offscreen" not in one.states]
    typed = {one.id for one in shown if roles and "focused" in one.states}
    believed = [Found(one, 1.0) for one in shown if one.id in typed or now.finder.believes(one)]
    return [one.element for one in without_twins(believed)]


def _why_not(now: Now, target: Target, matches: Sequence[Element] = (), sure: Sequence[Element] = ()) -> str:
    named = describe_target(target)
    if len(sure) > 1:
        return f"{len(sure)} things are {named}, and nothing tells which is meant"
    if any("disabled" in one.states for one in sure):
        return f"{named} is greyed out"
    if matches:
        return f"{named} is there, but cannot be reached"
    front = now.scene.front
    shown = f"; in front is “{front.title or front.app}”" if front is not None else ""
    if target.inside not in ("", DESKTOP) and not _recorded(now).windows(target.inside):
        return f"there is no window “{target.inside}”{shown}"
    if target.picture:
        return f"{named} is not visible{shown}"
    others = [one.role for one in now.scene.elements if is_same(one.name, target.name) and now.scene.in_front(one)]
    kinds = f"; what has this name is a {others[0]}" if others and target.role and others[0] else ""
    kind = f"{target.role} " if target.role and target.name else ""
    return f"there is no {kind}{named}{kinds}{shown}"


def _recorded(now: Now) -> Recorded:
    return Recorded(now.scene, now.names)


def _missing(now: Now, target: Target, roles: frozenset[str], why: str) -> _MissingError:
    """Return the error that a target is not there, with the named elements of its role in its window.

    If no window has that name, these are the elements in the front window.
    """
    front = now.scene.front
    is_there = target.inside == DESKTOP or _recorded(now).windows(target.inside)
    window = target.inside if is_there or front is None else front.title
    others = [
        one
        for one in _recorded(now).of_kind(target, roles, window)
        if one.name.strip() and "disabled" not in one.states
    ]
    return _MissingError(why, others[:_MOST_OTHERS], window)


def _in_front(now: Now, name: str) -> Steps[None]:
    """Wait for a window, and bring it to the front."""
    if not name:
        return
    for waited in range(_MOST_WAITS + 1):
        front = now.scene.front
        if front is not None and _recorded(now).is_named(front, name):
            return
        if waited and (window := _recorded(now).covered(name)) is not None:
            yield from raise_window(now, window)
            return
        if waited < _MOST_WAITS:
            yield Step.wait(f"“{name}” is not in front yet: wait.", _WAIT)
    windows = _recorded(now).windows(name)
    raise StuckError(
        f"{len(windows)} windows are called “{name}”" if len(windows) > 1 else _why_not(now, Target(inside=name))
    )
