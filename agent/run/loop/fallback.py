"""Chooses which model decides the next step: the main model, or a fallback model for a few steps when it is stuck.

The fallback model gets a summary of what was done, and not the main model's conversation. The main model gets a summary
when it resumes. The policy says whether a model on another machine may take over, and what it may be shown.
"""

from agent.core.actions import TOUCHING, CallTool, OpenApp, VisitPage, points_of
from agent.core.notes import Note
from agent.events import run_events as events
from agent.events.fates import Allowed
from agent.run.loop.context import RunContext
from agent.run.loop.performer import Turn
from agent.run.models.assemble import DecidingModel, FallbackModel
from agent.run.models.settings import LoopDetector
from agent.run.observing.observe import Observation
from agent.safety.naming import named
from agent.safety.policy_rules.policy_file import Leaving, holds_secret
from foundation.errors import MaiError
from foundation.printing import counted

#: Steps in a row without effect before the model counts as stuck. The loop detector warns at the same number.
_IN_VAIN = 3
#: A fallback model that could not help twice will not help.
_MOST_TAKEOVERS = 2
#: Newest entries that a summary includes, and their maximum length. Longer texts add nothing new.
_MOST, _LONGEST = 40, 300
_NOTHING = "nothing"
_HIDDEN = "something in a part of the screen that you are not shown"


class DecidingModels:
    """The models of one run that decide steps. `now` is the active one."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._own = self.now = context.own
        self.detector = LoopDetector(self._own.settings.loop_rule)
        self._relief = relief = context.relief
        self._fallback: DecidingModel | None = None  # set once it is prepared
        self._account = StepsInWords(None if relief is None or relief.endpoint.is_local else relief.leaving)
        self._takeovers = 0
        self._left = 0  # steps until the fallback model hands back
        self._in_vain = 0  # main model's steps in a row without effect
        self._refused = False  # permission was refused: ask and warn only once

    @property
    def on_fallback(self) -> bool:
        """Return whether the fallback model is active."""
        return self.now is not self._own

    def handle(self, event: events.Event) -> None:
        """Record an event for the summary at the next takeover."""
        if self._relief is not None:
            self._account.handle(event)

    def finished(self, done: Turn) -> str:
        """Count a finished step. Return why the main model is stuck, as a clause; "" if it is not."""
        if self.on_fallback:
            self._left -= 1
            return ""
        self._in_vain = self._in_vain + 1 if done.in_vain else 0 if done.changed else self._in_vain
        return f"{self._in_vain} steps in a row failed or changed nothing" if self._in_vain >= _IN_VAIN else ""

    async def change(self, step: int, stuck: str) -> bool:
        """Switch models if it is time to, from this step on. Return whether the model changed.

        `stuck` says why the active model is stuck, "" if it is not. Raises StoppedError.
        """
        if self.on_fallback:
            if not stuck and self._left > 0:
                return False
            self._hand_back(step, f"it is stuck, too: {stuck}" if stuck else "its steps are used up")
            return True
        return bool(stuck) and self._relief is not None and await self._hand_over(step, stuck, self._relief)

    def close(self) -> None:
        """Close the observers of both models."""
        if self._fallback is not None:
            self._fallback.observer.close()
        self._own.observer.close()

    async def _hand_over(self, step: int, stuck: str, relief: FallbackModel) -> bool:
        self._in_vain = 0  # restart the count, whether or not the takeover happens
        if self._refused or self._takeovers >= _MOST_TAKEOVERS:
            return False
        allowed = await self._allowed(step, stuck, relief)
        if allowed is None:
            return False
        self._takeovers += 1
        member = self._join(relief)
        account = self._account.take()
        member.actor.tell(str(Note("meanwhile" if self._takeovers > 1 else "takes_over", account)))
        self._become(member)
        self._left = relief.steps
        endpoint = relief.endpoint
        over = events.HandedOver(step, "relief", endpoint.model or "", endpoint.host, stuck, relief.steps, allowed)
        self._context.emit(over)
        return True

    async def _allowed(self, step: int, stuck: str, relief: FallbackModel) -> Allowed | None:
        """Return who or what permits the takeover; None if it is not permitted."""
        if relief.endpoint.is_local:
            return "local"
        emit, host = self._context.emit, relief.endpoint.host
        try:
            seen: Observation = await self._context.on_screen(self._join(relief).observer.look)
        except MaiError as error:
            self._context.race.check()
            emit(events.Warned(f"The model is stuck, and the one at {host} may not see the screen: {error}"))
            return None
        if seen.outline is not None and seen.outline.lacks:
            emit(events.Warned(f"Password fields may be readable in what is sent. {seen.outline.lacks}"))
        if relief.leaving.screenshots == "yes":
            return "policy"
        if await self._agrees(step, stuck, relief, seen):
            return "person"
        self._refused = True
        emit(events.Warned(f"The takeover by {host} was not approved: nothing was sent."))
        return None

    async def _agrees(self, step: int, stuck: str, relief: FallbackModel, seen: Observation) -> bool:
        endpoint, image = relief.endpoint, next(iter(seen.images), None)
        file = "" if image is None else f"leaving/{step:04d}.{image.format}"
        self._context.emit(
            events.ReliefAsked(step, endpoint.model or "", endpoint.host, relief.steps, stuck, image, file)
        )
        shown = f"the first picture is {relief.bundle}/{file}" if file else "it gets the screen in words only"
        question = (
            f"The model is stuck: {stuck}. May {endpoint.model or 'another one'} at {endpoint.host} take over for "
            f"{counted(relief.steps, 'step')}? It is sent the task, what was done in words, and the screen at every "
            f"step: {shown}."
        )
        return await self._context.race.for_person(self._context.person.permit(question))

    def _join(self, relief: FallbackModel) -> DecidingModel:
        self._fallback = self._fallback or relief.join()
        return self._fallback

    def _hand_back(self, step: int, why: str) -> None:
        self._own.actor.tell(str(Note("meanwhile", self._account.take())))
        self._become(self._own)
        self._context.emit(events.HandedBack(step, why))

    def _become(self, member: DecidingModel) -> None:
        self.now = member
        self.detector = LoopDetector(member.settings.loop_rule)


class StepsInWords:
    """Collects the actions of one model in words, until the other model takes over.

    Args:
        leaving: the rules about what may be sent to the fallback model; None for a local model.
    """

    def __init__(self, leaving: Leaving | None) -> None:
        self._leaving = leaving
        self._entries: list[str] = []
        self._called = False  # a tool was called in this step

    def handle(self, event: events.Event) -> None:
        """Record an event."""
        match event:
            case events.Acted():
                self._called = isinstance(event.target, CallTool)
                self._entries.append(self._words(event))
            case events.Dropped(why=why):
                self._entries.append(f"an action was not done: {why}")
            case events.StepFinished(changed=False):
                self._entries.append("that changed nothing on the screen")
            case events.StepFinished(reply=str(reply)) if not (self._called and self._leaving):
                self._entries.append(f"the reply was: {reply}")
            case events.PersonSaid(text=text):
                self._entries.append(f"the person said: {text}")
            case events.UserActed(what=what):
                self._entries.append(f"the person used the computer: {what}")

    def take(self) -> str:
        """Return the words since the last call, on one line."""
        entries, self._entries = self._entries[-_MOST:], []
        return "; ".join(" ".join(entry.split())[:_LONGEST] for entry in entries) or _NOTHING

    def _words(self, event: events.Acted) -> str:
        if self._leaving is not None and _is_hidden(event, self._leaving):
            return _HIDDEN if event.error is None else f"{_HIDDEN} (failed)"
        if any(map(holds_secret, event.elements)):
            return "typing into a field for passwords"
        words = named(event.target, event.aim)
        if event.error is None:
            return words
        # An error may quote a hidden window.
        hides = self._leaving is not None and self._leaving.hide
        return f"{words} (failed)" if hides else f"{words} (failed: {event.error})"


def _is_hidden(event: events.Acted, leaving: Leaving) -> bool:
    """Return whether an action went to something hidden, or may have."""
    aim = event.aim
    if leaving.hide and isinstance(event.target, TOUCHING):
        unknown = not (aim.app or aim.window) and not isinstance(event.target, OpenApp | VisitPage)
        if unknown or aim.window.endswith("…"):  # the part that was cut off may have matched a hidden title
            return True
    return (
        leaving.hides(aim.app, aim.window)
        or any(map(leaving.hides_element, event.elements))
        or any(map(leaving.hides_point, points_of(event.target)))
        or (aim.field is not None and leaving.covers(aim.field))
    )
