"""Presses keys, scrolls and waits."""

from functools import partial

from agent.literal.do.looking import area_named, at_once, look, moved, safe_spot
from agent.literal.do.now import Done, Move, Now, Pursuit, Step, Stuck, Verdict, press, until
from agent.literal.do.proof import key_may_close, leads, led_to, misnamed, vanished
from agent.literal.do.type_text import text_changed
from agent.literal.goals import Press, Scroll, Target, Wait

_MOST_SCROLLS, _MOST_UNDOS = 40, 30
_NOTHING = ", and nothing shows what came of it"


def press_keys(now: Now, goal: Press) -> Pursuit:
    """Press a key combination."""
    keys = "+".join(goal.keys)
    last = next((move for move in reversed(now.earlier) if move.action != "wait"), None)
    if keys == "ctrl+z" and last is not None and last.action == "type" and _is_longer(text_changed(now, last)):
        return (yield from _take_back(now, last))
    attempt = yield press(f"Press {keys}.", keys, main=True)

    def effect() -> Verdict | None:
        if not key_may_close(keys) and (gone := vanished(now, attempt)):
            return Stuck(f"When I pressed {keys}, {gone}.")
        if other := misnamed(now, attempt):
            return Stuck(f"When I pressed {keys}, the file was called “{other}”.")
        effects = now.effects_of(attempt)
        return Done(f"I pressed {keys}: {effects.words}") if effects else None

    times = 1 if now.last or not leads(goal) else 0
    verdict = yield from until(effect, f"{keys} shows no effect yet: wait and look again.", times)
    outcome = "" if verdict else led_to(now, attempt)
    return verdict or Done(f"I pressed {keys}{f': {outcome}' if outcome else _NOTHING}", verified=bool(outcome))


def _take_back(now: Now, typed: Move) -> Pursuit:
    """Undo until the fields hold what they held before the text was typed: editors undo it word by word.

    Stops when no field is longer than before: another undo would remove what the person wrote.
    """
    held = ""
    for _ in range(_MOST_UNDOS):
        attempt = yield press("Press ctrl+z.", "ctrl+z", main=True)
        yield from until(partial(now.effects_of, attempt), "ctrl+z shows no effect yet: wait.", 1, 0.5)
        if (texts := text_changed(now, typed)) is None:
            return Done("I pressed ctrl+z until the text was as it was before")
        held = texts[1]
        if not _is_longer(texts) or not now.effects_of(attempt):
            break
    return Stuck(f"I pressed ctrl+z, and the text holds “{held[:60]}”, which is not what it held before.")


def _is_longer(texts: tuple[str, str] | None) -> bool:
    return texts is not None and len(texts[1]) > len(texts[0])


def scroll(now: Now, goal: Scroll) -> Pursuit:
    """Scroll once, or to the end."""
    where = f" in “{goal.inside}”" if goal.inside else ""

    def is_there() -> bool | None:
        return bool(not goal.inside or now.scene.named_window(goal.inside) or area_named(now, goal.inside)) or None

    found = yield from look(now, at_once(is_there), Target(inside=goal.inside, name=goal.inside), tabs=False)
    if isinstance(found, Stuck):
        return found
    turns = 0
    while True:
        turns += 1
        area = area_named(now, goal.inside) if goal.inside else None
        call: dict[str, object] = {"action": "scroll", "direction": goal.direction, "amount": goal.notches}
        if (spot := safe_spot(now.scene, area)) is not None:
            call["coordinate"] = now.point(*spot)
        turn = yield Step(f"Scroll {goal.direction}.", call, main=True)
        went_on = moved(now, turn)
        if not goal.to_end or not went_on or turns == _MOST_SCROLLS:
            break
    if turns > 1 or went_on:
        return Done(f"I scrolled {goal.direction}{where}" + (" to the end" if goal.to_end else ""))
    if goal.to_end:
        return Done(f"It stands at the end already: nothing moved{where} when I scrolled {goal.direction}")
    return Done(f"I scrolled {goal.direction}{where}, and nothing moved", verified=False)


def let_pass(_now: Now, goal: Wait) -> Pursuit:
    """Wait."""
    yield Step(f"Wait {goal.seconds:g} s.", {"action": "wait", "seconds": goal.seconds}, main=True)
    return Done(f"I waited {goal.seconds:g} s")
