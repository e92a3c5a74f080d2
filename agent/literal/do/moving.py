"""Keys, the wheel and time."""

from agent.literal.do.looking import area_named, look_further, moved, safe_spot
from agent.literal.do.proof import key_may_close, leads, led_to, misnamed, vanished
from agent.literal.goals import Press, Scroll, Target, Wait
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, press, wait

_MOST_SCROLLS = 40


def press_keys(now: GoalState, goal: Press) -> Verdict:
    """The next step of pressing a chord."""
    keys = "+".join(goal.keys)
    attempt = now.acted
    if attempt is None:
        return press(f"Press {keys}.", "act", keys)
    if not key_may_close(keys) and (gone := vanished(now, attempt)):
        return Stuck(f"When I pressed {keys}, {gone}.")
    if other := misnamed(now):
        return Stuck(f"When I pressed {keys}, the file was called “{other}”.")
    effects = now.effects_of(attempt)
    if effects:
        return Done(f"I pressed {keys}: {effects.words}")
    if now.waits < 1 and (now.last or not leads(goal)):
        return wait(f"{keys} shows no effect yet: wait and look again.")
    if told := led_to(now, attempt):
        return Done(f"I pressed {keys}: {told}")
    return Done(f"I pressed {keys}, and nothing shows what came of it", verified=False)


def scroll(now: GoalState, goal: Scroll) -> Verdict:
    """The next step of scrolling."""
    turns = now.tried("act")
    where = f" in “{goal.inside}”" if goal.inside else ""
    if turns:
        went_on = moved(now, turns[-1])
        if goal.to_end and went_on and len(turns) < _MOST_SCROLLS:
            return _turn(now, goal)
        if len(turns) > 1 or went_on:
            return Done(f"I scrolled {goal.direction}{where}" + (" to the end" if goal.to_end else ""))
        if goal.to_end:
            return Done(f"It stands at the end already: nothing moved{where} when I scrolled {goal.direction}")
        return Done(f"I scrolled {goal.direction}{where}, and nothing moved", verified=False)
    if goal.inside and now.scene.named_window(goal.inside) is None and area_named(now, goal.inside) is None:
        return look_further(now, Target(inside=goal.inside, name=goal.inside), tabs=False)
    return _turn(now, goal)


def _turn(now: GoalState, goal: Scroll) -> Verdict:
    area = area_named(now, goal.inside) if goal.inside else None
    call: dict[str, object] = {"action": "scroll", "direction": goal.direction, "amount": goal.notches}
    if (spot := safe_spot(now.scene, area)) is not None:
        call["coordinate"] = now.point(*spot)
    return Step(f"Scroll {goal.direction}.", "act", call)


def let_pass(now: GoalState, goal: Wait) -> Verdict:
    """Wait."""
    if now.moves:
        return Done(f"I waited {goal.seconds:g} s")
    return Step(f"Wait {goal.seconds:g} s.", "act", {"action": "wait", "seconds": goal.seconds})
