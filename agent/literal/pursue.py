"""How each kind of goal is pursued: a function a kind looks at the situation and gives the next step or an end."""

from typing import Any

from agent.literal import sight
from agent.literal.conversation import Move
from agent.literal.grammar import Close, Enter, Open, Pause, Point, Press, Toggle, Turn, describe_goal
from agent.literal.knowledge import reach
from agent.literal.ocr import Box
from agent.literal.seek import Seeker, Spot, same_spot
from agent.literal.situation import GRID, Done, Situation, Step, Stuck, Verdict
from agent.literal.text import plain

#: Actions spent on one goal before it is given up.
_MOST_MOVES = 14
#: A window is gone when more than this share of its area changed; a question in front of it changes less.
_GONE = 0.6
#: Text that nothing takes when pasted is pressed key by key, if it is at most this long.
_MOST_KEYS = 24


def pursue(now: Situation) -> Verdict:
    """The next step for a goal, or its end."""
    if len(now.moves) >= _MOST_MOVES:
        return Stuck(f"After {_MOST_MOVES} actions I give up to {describe_goal(now.goal)}.")
    match now.goal:
        case Open(name):
            return _open(now, name)
        case Point():
            return _point(now, now.goal)
        case Toggle():
            return _toggle(now, now.goal)
        case Enter():
            return _enter(now, now.goal)
        case Press(keys):
            if now.moves:
                return Done(f"I pressed {'+'.join(keys)}.")
            return Step(f"Press {'+'.join(keys)}.", "act", {"action": "key", "keys": "+".join(keys)})
        case Turn():
            return _turn(now, now.goal)
        case Pause(seconds):
            if now.moves:
                return Done(f"I waited {seconds:g} s.")
            return Step(f"Wait {seconds:g} s.", "act", {"action": "wait", "seconds": seconds})
        case Close(target):
            return _close(now, target)


def _open(now: Situation, name: str) -> Verdict:
    latest = now.latest
    if latest is None:
        visible = now.page.find(name, least=0.98) if now.earlier else []
        region = now.region()
        inside = [match for match in visible if region is not None and region.contains(*match.box.center)]
        if inside:
            place = now.grid(inside[0].box)
            return Step(f"“{name}” is visible in the window: open it there.", "place", _click(place))
        return Step(f"Open “{name}”.", "act", {"action": "open", "text": name})
    if latest.intent == "act":
        if now.had_effect:
            return Done(f"{name} is open.")
        if not latest.has("failed") and now.page.find(name, least=0.9):
            return Done(f"{name} was open already.")
        if not latest.has("failed") and not any(move.intent == "focus" for move in now.moves):
            return Step(f"“{name}” may need longer: wait.", "focus", {"action": "wait", "seconds": 2})
    elif latest.intent == "focus":
        if now.had_effect or now.page.find(name, least=0.9):
            return Done(f"{name} is open.")
        return Stuck(f"I started “{name}”, but nothing appeared on the screen.")
    elif now.had_effect:
        return Done(f"“{name}” is open.")
    return _open_by_sight(now, name)


def _open_by_sight(now: Situation, name: str) -> Verdict:
    """No application of that name: an icon or entry that is shown under it, clicked and then double-clicked."""
    matches = now.page.find(name, least=0.9)
    for match in matches:
        place = now.grid(match.box)
        tries = [move for move in now.moves if same_spot(move, place)]
        if not tries:
            return Step(f"No application is called “{name}”, but it is visible: click it.", "place", _click(place))
        if len(tries) == 1:
            again = {"action": "double_click", "coordinate": place}
            return Step(f"A click on “{name}” changed nothing: double-click it.", "place", again)
    if not any(move.intent == "act" for move in now.moves):
        return Step(f"Open “{name}”.", "act", {"action": "open", "text": name})
    return Stuck(f"I could not open “{name}”: no application and nothing on the screen has that name.")


def _seeker(now: Situation, goal: Point | Toggle) -> Seeker:
    return Seeker(
        now.page,
        now.region(),
        now.moves,
        goal.target,
        on=goal.on if isinstance(goal, Toggle) else True,
        inside=goal.inside,
        whole=goal.whole,
        near=goal.near if isinstance(goal, Point) else "",
        been=now.been,
        visited=now.visited,
    )


def _point(now: Situation, goal: Point) -> Verdict:
    latest, attempt = now.latest, now.attempt
    if attempt is not None and now.took_effect(attempt):
        return Done(f"I clicked “{goal.target}”, and the screen changed.")
    if attempt is not None and attempt is latest:
        return _wait_for_it(goal.target)
    was_opened = latest is not None and not latest.has("failed") and latest.call.get("text") == goal.target
    if was_opened and (now.had_effect or now.page.find(goal.target, least=0.9)):
        return Done(f"{goal.target} is open.")
    seeker = _seeker(now, goal)
    spot = seeker.next_spot()
    if spot is not None:
        action = {1: {"left": "click", "right": "right_click", "middle": "middle_click"}[goal.button]}.get(
            goal.count, "double_click"
        )
        words = f"“{spot.match.label.text}” is visible: {action.replace('_', ' ')} {spot.words}."
        return Step(words, "act", _click(now.grid(spot.box), action))
    acted = [move for move in now.moves if move.intent == "act"]
    if acted and not now.last:
        return Done(f"I clicked “{goal.target}”; nothing visible changed.")
    if acted:
        return Stuck(f"I clicked “{goal.target}”, but nothing changed on the screen.")
    if goal.or_open and not any(move.call.get("action") == "open" for move in now.moves):
        return Step(f"“{goal.target}” is not visible: open it.", "prepare", {"action": "open", "text": goal.target})
    return _look_further(now, seeker)


def _toggle(now: Situation, goal: Toggle) -> Verdict:
    state = "on" if goal.on else "off"
    seeker = _seeker(now, goal)
    shows = seeker.thing.shows
    attempt = now.attempt
    if attempt is not None:
        spot = seeker.clicked(attempt)
        if not shows and _switched(now, goal, attempt, spot):
            what = f" ({spot.words})" if spot is not None and spot.match.quality < 1 else ""
            return Done(f"“{goal.target}” is {state} now{what}.")
        if shows and (attempt.before is None or sight.became(shows, attempt.before.image, now.image)):
            return Done(f"“{goal.target}” is {state} now: the screen became {shows}.")
        if attempt is now.latest:
            return _wait_for_it(goal.target)
    untouched = not any(move.intent == "act" for move in now.moves)
    # A window that is not painted yet is dark, too: only one with text in it shows what it is.
    window = now.window() if shows and untouched and _opened(now, seeker.thing.lives_in) else None
    if window is not None and sight.is_already(shows, now.image, window):
        return Done(f"“{goal.target}” is {state} already: the window is {shows.removesuffix('er')}.")
    spot = seeker.next_spot(switches=not shows)
    if spot is not None:
        if spot.widget is not None and spot.widget.on is goal.on:
            return Done(f"“{spot.match.label.text}” is {state} already.")
        return Step(f"Switch {state} “{goal.target}”: click {spot.words}.", "act", _click(now.grid(spot.box)))
    if any(move.intent == "act" for move in now.moves):
        return Stuck(f"I clicked what stands for “{goal.target}”, but it did not become {state}.")
    return _look_further(now, seeker)


def _wait_for_it(target: str) -> Step:
    """Look again before anything is clicked a second time: a late effect would be undone by it."""
    return Step(f"“{target}” shows no effect yet: wait and look again.", "late", {"action": "wait", "seconds": 1})


def _switched(now: Situation, goal: Toggle, attempt: Move, clicked: Spot | None) -> bool:
    """Whether the control that was clicked shows the wanted state; without one, whether the click had an effect."""
    if clicked is not None and clicked.widget is not None and clicked.widget.on is not None:
        return clicked.widget.on is goal.on
    return now.took_effect(attempt)


def _enter(now: Situation, goal: Enter) -> Verdict:
    typed = [move for move in now.moves if move.intent == "act"]
    pressed = [move for move in now.moves if move.intent == "keys"]
    if not typed:
        focused = any(move.intent == "focus" for move in now.moves)
        if goal.into and not focused:
            seeker = Seeker(now.page, now.region(), now.moves, goal.into)
            spot = seeker.next_spot()
            if spot is None and goal.into.lower() == "search" and (box := seeker.empty_field()) is not None:
                return Step("The search box has no label: click the empty field.", "focus", _click(now.grid(box)))
            if spot is None:
                return _look_further(now, seeker)
            return Step(f"Focus “{goal.into}”: click it.", "focus", _click(now.grid(seeker.field_of(spot.match))))
        return Step(f"Type the text ({len(goal.text)} characters).", "act", {"action": "type", "text": goal.text})
    if not pressed and (now.had_effect or not goal.text.strip()):
        return Done("I typed the text, and the screen changed.")
    # Nothing took the pasted text: some windows (calculators, games) want keys.
    if len(goal.text) > _MOST_KEYS or not goal.text.isascii():
        return Stuck("I typed the text, but nothing on the screen took it.")
    if len(pressed) < len(goal.text):
        key = {"\n": "enter", "\t": "tab", " ": "space"}.get(goal.text[len(pressed)], goal.text[len(pressed)])
        return Step(f"Pasted text had no effect: press the key {key}.", "keys", {"action": "key", "keys": key})
    if any(not move.has("no_effect") and not move.has("failed") for move in pressed):
        return Done("I pressed the keys of the text one by one, and the screen changed.")
    return Stuck("I typed the text and pressed its keys, but nothing on the screen took it.")


def _turn(now: Situation, goal: Turn) -> Verdict:
    call: dict[str, Any] = {"action": "scroll", "direction": goal.direction, "amount": goal.notches}
    region = now.region()
    if region is not None:
        call["coordinate"] = now.grid(region)
    if not now.moves:
        return Step(f"Scroll {goal.direction}.", "act", call)
    if goal.to_end and now.had_effect:
        return Step(f"Scroll {goal.direction} further.", "act", call)
    if now.had_effect or goal.to_end:
        return Done(f"I scrolled {goal.direction}" + (" to the end." if goal.to_end else "."))
    return Done(f"I scrolled {goal.direction}; nothing moved.")


def _close(now: Situation, target: str) -> Verdict:
    latest = now.latest
    if latest is None or latest.intent == "focus":
        return _close_front(now, target)
    if not now.had_effect:
        return Stuck("I tried to close the window, but it is still there.")
    window = _region_before(now)
    if window is not None and latest.before is not None:
        gone = sight.share_changed(latest.before.image, now.image, window)
        if gone < _GONE and not now.last:
            return Done("Something else appeared when I closed the window.")
        if gone < _GONE:
            shown = ", ".join(f"“{text}”" for text in now.page.texts(8))
            return Stuck(f"The window did not close; it may ask something first. I can read: {shown}.")
    return Done("The window is closed.")


def _close_front(now: Situation, target: str) -> Verdict:
    """Press the keys that close, if there is a window, and if it is the one that was named."""
    latest = now.latest
    if now.window() is None and now.page.text_area() is None:
        return Stuck("I see no window to close.")
    close = Step("Close the window in front.", "act", {"action": "key", "keys": "alt+f4"})
    if not target:
        return close
    if latest is not None or plain(target) == _last_opened(now):
        return close
    # Clicking its title brings it up; its button in a panel at the edge might put it away instead.
    edge = 0.04 * now.image.height
    titles = [
        match for match in now.page.find(target, least=0.84) if edge < match.box.center[1] < now.image.height - edge
    ]
    if not titles:
        return Stuck(f"I see no window called “{target}”.")
    title = min(titles, key=lambda match: match.box.top)
    return Step(f"Bring “{target}” to the front.", "focus", _click(now.grid(title.box)))


def _last_opened(now: Situation) -> str:
    """The name of what was opened last in this run, "" if nothing was."""
    names = [str(move.call.get("text", "")) for move in now.earlier if move.call.get("action") == "open"]
    return plain(names[-1]) if names else ""


def _region_before(now: Situation) -> Box | None:
    """The window in front before the last move."""
    latest = now.latest
    if latest is None or latest.before is None:
        return None
    earlier = Situation(now.goal, now.part, now.moves[:-1], now.earlier, latest.before.image, now.read, now.last)
    return earlier.region()


def _look_further(now: Situation, seeker: Seeker) -> Verdict:
    """The next place to look for something that is not visible."""
    place = seeker.next_place()
    if place is not None:
        match, action = place
        words = f"“{seeker.target}” is not visible: look under “{match.label.text}”."
        return Step(words, "place", _click(now.grid(match.box), action))
    if seeker.lacks_its_window() and not _opened(now, seeker.inside):
        return Step(f"“{seeker.inside}” is not visible: open it.", "prepare", {"action": "open", "text": seeker.inside})
    if seeker.thing.lives_in and not _opened(now, seeker.thing.lives_in) and not seeker.sees(reach("settings")):
        words = f"“{seeker.target}” lives in {seeker.thing.lives_in}: open it."
        return Step(words, "prepare", {"action": "open", "text": seeker.thing.lives_in})
    visits = [index for index, move in enumerate(now.moves) if move.intent in ("place", "prepare", "back")]
    since = now.moves[visits[-1] + 1 :] if visits else now.moves
    if not any(move.intent in ("clear", "scroll") for move in since):
        words = f"“{seeker.target}” is not visible; it may be covered or late: move the pointer away."
        return Step(words, "clear", {"action": "move", "coordinate": [GRID - 3, GRID // 2]})
    scrolls = [move for move in now.moves if move.intent == "scroll"]
    area = now.window() or now.page.text_area()
    # Without a window there is nothing to scroll: on a bare desktop the wheel switches workspaces.
    if area is not None and len(scrolls) < 4 and (not scrolls or now.latest is not scrolls[-1] or now.had_effect):
        call = {"action": "scroll", "direction": "down", "amount": 5, "coordinate": now.grid(area)}
        return Step(f"“{seeker.target}” is not visible: scroll down.", "scroll", call)
    back = seeker.way_back()
    if back is not None:
        words = f"“{seeker.target}” is not here: go back by “{back.label.text}”."
        return Step(words, "back", _click(now.grid(back.box)))
    shown = ", ".join(f"“{text}”" for text in now.page.texts(12, now.window())) or "nothing"
    return Stuck(f"I could not find “{seeker.target}”. I can read: {shown}.")


def _opened(now: Situation, application: str) -> bool:
    """Whether the application was opened in this run, as far as the chat tells."""
    return any(
        move.call.get("action") == "open" and str(move.call.get("text", "")).lower() == application.lower()
        for move in [*now.earlier, *now.moves]
    )


def _click(place: list[int], action: str = "click") -> dict[str, Any]:
    return {"action": action, "coordinate": place}
