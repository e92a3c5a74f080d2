"""How each kind of goal is reached: a function a kind looks at how things stand and gives the next step or an end."""

from dataclasses import replace
from typing import Any

from agent.literal import changes
from agent.literal.conversation import GRID, Intent, Move, on_grid
from agent.literal.goal_state import Done, GoalState, Step, Stuck, Verdict
from agent.literal.goals import Choose, Click, Close, Open, Press, Scroll, Target, Toggle, Type, Wait
from agent.literal.knowledge import words_for
from agent.literal.labels import plain
from agent.literal.search import Search, Spot
from agent.literal.wording import describe_goal

#: Actions spent on one goal before it is given up.
_MOST_MOVES = 14
#: A window is gone when more than this share of its area changed; a question in front of it changes less.
_GONE = 0.6
#: Text that nothing takes when pasted is pressed key by key, if it is at most this long.
_MOST_KEYS = 24
_CLICKS = {"left": "click", "right": "right_click", "middle": "middle_click"}


def next_step(now: GoalState) -> Verdict:
    """The next step for a goal, or its end."""
    if len(now.moves) >= _MOST_MOVES:
        return Stuck(f"After {_MOST_MOVES} actions I give up to {describe_goal(now.goal)}.")
    match now.goal:
        case Open(name):
            return _open(now, name)
        case Choose(value, control):  # it is shown under that name near its control
            return _click(now, Click(Target(value, inside=control.inside, under=control.name)))
        case Click():
            return _click(now, now.goal)
        case Toggle():
            return _toggle(now, now.goal)
        case Type():
            return _type(now, now.goal)
        case Press(keys):
            if now.moves:
                return Done(f"I pressed {'+'.join(keys)}.")
            return Step(f"Press {'+'.join(keys)}.", "act", {"action": "key", "keys": "+".join(keys)})
        case Scroll():
            return _scroll(now, now.goal)
        case Wait(seconds):
            if now.moves:
                return Done(f"I waited {seconds:g} s.")
            return Step(f"Wait {seconds:g} s.", "act", {"action": "wait", "seconds": seconds})
        case Close(target):
            return _close(now, target)
        case _:
            return Stuck(f"I cannot do this yet: {describe_goal(now.goal)}.")


def _open(now: GoalState, name: str) -> Verdict:
    latest = now.latest
    if latest is None:
        visible = now.page.find(name, least=0.98) if now.earlier else []
        region = now.region()
        inside = [match for match in visible if region is not None and region.contains(*match.box.center)]
        if inside:
            return now.click(f"“{name}” is visible in the window: open it there.", "place", inside[0].box)
        return _start(f"Open “{name}”.", "act", name)
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


def _open_by_sight(now: GoalState, name: str) -> Verdict:
    """No application of that name: an icon or entry that is shown under it, clicked and then double-clicked."""
    matches = now.page.find(name, least=0.9)
    for match in matches:
        tries = sum(move.pointed_at(on_grid(match.box, now.image)) for move in now.moves)
        if not tries:
            return now.click(f"No application is called “{name}”, but it is visible: click it.", "place", match.box)
        if tries == 1:
            words = f"A click on “{name}” changed nothing: double-click it."
            return now.click(words, "place", match.box, "double_click")
    if not any(move.intent == "act" for move in now.moves):
        return _start(f"Open “{name}”.", "act", name)
    return Stuck(f"I could not open “{name}”: no application and nothing on the screen has that name.")


def _click(now: GoalState, goal: Click) -> Verdict:
    latest, attempt = now.latest, now.attempt
    if attempt is not None and now.took_effect(attempt):
        return Done(f"I clicked “{goal.target.name}”, and the screen changed.")
    if attempt is not None and attempt is latest:
        return _wait_for_it(goal.target.name)
    was_opened = latest is not None and not latest.has("failed") and latest.call.get("text") == goal.target.name
    if was_opened and (now.had_effect or now.page.find(goal.target.name, least=0.9)):
        return Done(f"{goal.target.name} is open.")
    search = Search(now, goal.target)
    if (spot := search.next_spot()) is not None:
        action = "double_click" if goal.count > 1 else _CLICKS[goal.button]
        words = f"“{spot.match.label.text}” is visible: {action.replace('_', ' ')} {spot.words}."
        return now.click(words, "act", spot.box, action)
    acted = [move for move in now.moves if move.intent == "act"]
    if acted and not now.last:
        return Done(f"I clicked “{goal.target.name}”; nothing visible changed.")
    if acted:
        return Stuck(f"I clicked “{goal.target.name}”, but nothing changed on the screen.")
    if goal.or_open and not any(move.call.get("action") == "open" for move in now.moves):
        return _start(f"“{goal.target.name}” is not visible: open it.", "prepare", goal.target.name)
    return _look_further(now, search)


def _toggle(now: GoalState, goal: Toggle) -> Verdict:
    state = "on" if goal.on else "off"
    search = Search(now, goal.target, on=goal.on)
    shows = search.thing.shows
    attempt = now.attempt
    if attempt is not None:
        spot = search.clicked(attempt)
        if not shows and _switched(now, goal, attempt, spot):
            what = f" ({spot.words})" if spot is not None and spot.match.quality < 1 else ""
            return Done(f"“{goal.target.name}” is {state} now{what}.")
        if shows and (attempt.before is None or changes.became(shows, attempt.before.image, now.image)):
            return Done(f"“{goal.target.name}” is {state} now: the screen became {shows}.")
        if attempt is now.latest:
            return _wait_for_it(goal.target.name)
    untouched = not any(move.intent == "act" for move in now.moves)
    # A window that is not painted yet is dark, too: only one with text in it shows what it is.
    window = now.window() if shows and untouched and now.opened(search.thing.lives_in) else None
    if window is not None and changes.is_already(shows, now.image, window):
        return Done(f"“{goal.target.name}” is {state} already: the window is {shows.removesuffix('er')}.")
    if (spot := search.next_spot(switches=not shows)) is not None:
        if spot.widget is not None and spot.widget.on is goal.on:
            return Done(f"“{spot.match.label.text}” is {state} already.")
        return now.click(f"Switch {state} “{goal.target.name}”: click {spot.words}.", "act", spot.box)
    if any(move.intent == "act" for move in now.moves):
        return Stuck(f"I clicked what stands for “{goal.target.name}”, but it did not become {state}.")
    return _look_further(now, search)


def _wait_for_it(target: str) -> Step:
    """Look again before anything is clicked a second time: a late effect would be undone by it."""
    return Step(f"“{target}” shows no effect yet: wait and look again.", "late", {"action": "wait", "seconds": 1})


def _switched(now: GoalState, goal: Toggle, attempt: Move, clicked: Spot | None) -> bool:
    """Whether the control that was clicked shows the wanted state; without one, whether the click had an effect."""
    if clicked is not None and clicked.widget is not None and clicked.widget.on is not None:
        return clicked.widget.on is goal.on
    return now.took_effect(attempt)


def _type(now: GoalState, goal: Type) -> Verdict:
    typed = [move for move in now.moves if move.intent == "act"]
    pressed = [move for move in now.moves if move.intent == "keys"]
    if not typed:
        focused = any(move.intent == "focus" for move in now.moves)
        if goal.into and not focused:
            search = Search(now, goal.into)
            spot = search.next_spot()
            if spot is None and goal.into.name.lower() == "search" and (box := search.empty_field()) is not None:
                return now.click("The search box has no label: click the empty field.", "focus", box)
            if spot is None:
                return _look_further(now, search)
            return now.click(f"Focus “{goal.into.name}”: click it.", "focus", search.field_of(spot.match))
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


def _scroll(now: GoalState, goal: Scroll) -> Verdict:
    call: dict[str, Any] = {"action": "scroll", "direction": goal.direction, "amount": goal.notches}
    if (region := now.region()) is not None:
        call["coordinate"] = on_grid(region, now.image)
    if not now.moves:
        return Step(f"Scroll {goal.direction}.", "act", call)
    if goal.to_end and now.had_effect:
        return Step(f"Scroll {goal.direction} further.", "act", call)
    if now.had_effect or goal.to_end:
        return Done(f"I scrolled {goal.direction}" + (" to the end." if goal.to_end else "."))
    return Done(f"I scrolled {goal.direction}; nothing moved.")


def _close(now: GoalState, target: str) -> Verdict:
    latest = now.latest
    if latest is None or latest.intent == "focus":
        return _close_front(now, target)
    if not now.had_effect:
        return Stuck("I tried to close the window, but it is still there.")
    before = None if latest.before is None else replace(now, moves=now.moves[:-1], image=latest.before.image)
    window = None if before is None else before.region()
    if before is not None and window is not None:
        gone = changes.share_changed(before.image, now.image, window)
        if gone < _GONE and not now.last:
            return Done("Something else appeared when I closed the window.")
        if gone < _GONE:
            shown = ", ".join(f"“{text}”" for text in now.page.texts(8))
            return Stuck(f"The window did not close; it may ask something first. I can read: {shown}.")
    return Done("The window is closed.")


def _close_front(now: GoalState, target: str) -> Verdict:
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
    return now.click(f"Bring “{target}” to the front.", "focus", title.box)


def _last_opened(now: GoalState) -> str:
    """The name of what was opened last in this run, "" if nothing was."""
    names = [str(move.call.get("text", "")) for move in now.earlier if move.call.get("action") == "open"]
    return plain(names[-1]) if names else ""


def _look_further(now: GoalState, search: Search) -> Verdict:
    """The next place to look for something that is not visible."""
    if (place := search.next_place()) is not None:
        match, action = place
        words = f"“{search.target}” is not visible: look under “{match.label.text}”."
        return now.click(words, "place", match.box, action)
    if search.lacks_its_window() and not now.opened(search.inside):
        return _start(f"“{search.inside}” is not visible: open it.", "prepare", search.inside)
    if search.thing.lives_in and not now.opened(search.thing.lives_in) and not search.sees(words_for("settings")):
        words = f"“{search.target}” lives in {search.thing.lives_in}: open it."
        return _start(words, "prepare", search.thing.lives_in)
    visits = [index for index, move in enumerate(now.moves) if move.intent in ("place", "prepare", "back")]
    since = now.moves[visits[-1] + 1 :] if visits else now.moves
    if not any(move.intent in ("clear", "scroll") for move in since):
        words = f"“{search.target}” is not visible; it may be covered or late: move the pointer away."
        return Step(words, "clear", {"action": "move", "coordinate": [GRID - 3, GRID // 2]})
    scrolls = [move for move in now.moves if move.intent == "scroll"]
    area = now.window() or now.page.text_area()
    # Without a window there is nothing to scroll: on a bare desktop the wheel switches workspaces.
    if area is not None and len(scrolls) < 4 and (not scrolls or now.latest is not scrolls[-1] or now.had_effect):
        call = {"action": "scroll", "direction": "down", "amount": 5, "coordinate": on_grid(area, now.image)}
        return Step(f"“{search.target}” is not visible: scroll down.", "scroll", call)
    if (back := search.way_back()) is not None:
        words = f"“{search.target}” is not here: go back by “{back.label.text}”."
        return now.click(words, "back", back.box)
    shown = ", ".join(f"“{text}”" for text in now.page.texts(12, now.window())) or "nothing"
    return Stuck(f"I could not find “{search.target}”. I can read: {shown}.")


def _start(words: str, intent: Intent, application: str) -> Step:
    return Step(words, intent, {"action": "open", "text": application})
