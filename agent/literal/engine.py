"""The engine: decides the next action from the instruction and the elements on the screen.

It pursues the goals one by one (`do`). A goal counts as proved only if a control, a setting, a file, a window or the
typed text shows it. If a target is not found, the engine says so and never clicks something else.
"""

import io
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from agent.core.changes import Change
from agent.core.geometry import Size
from agent.core.notes import Note, read_notes, without_notes
from agent.families.base import PastStep, PromptRequest
from agent.literal import goals
from agent.literal.do.looking import UNANSWERED
from agent.literal.do.now import Already, Done, Move, Now, Step, Steps, StuckError, WhichError, agrees
from agent.literal.do.proof import leads, shown_by_sum, shown_late
from agent.literal.do.pursue import pursue
from agent.literal.find.scene import Scene
from agent.literal.goals import Goal, Question, Reading, Target
from agent.literal.language.grammar import read_instruction
from agent.literal.language.sentences import NotUnderstoodError
from agent.literal.language.wording import UNDERSTOOD, describe_goal
from agent.literal.vocabulary.translations import Names
from agent.model.refusals import ModelError
from agent.screen.encode import EncodedImage
from agent.screen.outline import Outline

if TYPE_CHECKING:
    from PIL.Image import Image

_INSTEAD = re.compile(r"(?i)[,;]?\s*\binstead\b[.!]?\s*$|^\s*instead,?\s+|^\s*(?:no|wait|sorry|actually)\s*[,.!:]\s*")
_SKIP = re.compile(r"(?i)\s*(?:please )?skip\b")
#: Actions spent on one goal before it is given up.
_MOST_MOVES = 40
#: Waits for a busy window, which reports no elements, and seconds of each wait. Its accessibility tree is read again
#: after ten seconds.
_MOST_BUSY, _BUSY = 14, 1.2
#: Goals that can be begun on any screen, and goals that change what is shown.
_INDEPENDENT = goals.Open | goals.Press | goals.Wait
_TOUCHING = goals.Open | goals.Click | goals.Close | goals.Press
#: Goals that act on visible elements. The effect of a step that the person changed does not prove them.
_ON_SCREEN = goals.Open | goals.Click | goals.Toggle | goals.Choose | goals.SetValue | goals.Type
#: Goals that need no elements of the front window. A recipe waits for the target of each step.
_NEEDS_NO_ELEMENTS = _INDEPENDENT | goals.Close | goals.ArrangeWindow | goals.Repeat
#: Seconds of the last wait for evidence.
_LATE = 2.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The engine's next answer: a thought and the arguments of one call."""

    thought: str
    arguments: dict[str, Any]


def by_grammar(instruction: str) -> Reading:
    """Return the reading of the grammar. Raises NotUnderstoodError."""
    return Reading(list(read_instruction(instruction)))


class Engine:
    """Decides the steps of runs, one run at a time.

    `understand` may raise NotUnderstoodError. `repairs` takes the targets that a text model finds for a recipe's steps;
    None if there is no such model.
    """

    def __init__(
        self,
        understand: Callable[[str], Reading] = by_grammar,
        repairs: dict[int, Target] | None = None,
    ) -> None:
        self._understand = understand
        self._repairs = repairs
        self._run: _Run | None = None
        self._lock = Lock()  # a cancelled request may still be running in its thread

    def reply(self, prompt: PromptRequest) -> Reply:
        """Return the next answer. Raises ModelError if there is no instruction or no screenshot."""
        picture = prompt.images[-1] if prompt.images else None
        if picture is None or not without_notes(prompt.instruction):
            missing = "screenshot" if picture is None else "instruction"
            raise ModelError("refused", f"The literal engine cannot answer this: there is no {missing}.", "")
        with self._lock:
            try:
                run = self._go_on(prompt)
            except NotUnderstoodError as error:
                return _give_up(f"{error} This is the literal engine; it understands English: {UNDERSTOOD}.", ())
            return run.decide(self._scene(prompt.outline, picture), prompt.changes, picture.size)

    @property
    def awaits(self) -> bool:
        """Whether the last step has a check for its effect, see `Step.until`."""
        return self._run is not None and self._run.until is not None

    def shows_awaited(self, outline: Outline) -> bool:
        """Return whether a screen shows what the last step was done for, so that it need not become still first."""
        with self._lock:
            return self._run is not None and self._run.shows_awaited(Scene(outline))

    @property
    def question(self) -> Question | None:
        """What a text model is to be asked before the next answer; None if nothing."""
        return None if self._run is None else self._run.now.question

    def _go_on(self, prompt: PromptRequest) -> "_Run":
        """Return the run of a request, advanced to its last step.

        Replays all steps if the run is not known, or if its last answer was not carried out (the person stepped in).
        """
        if self._run is not None and self._run.awaits(prompt):
            self._run.take(prompt.steps[-1])
            return self._run
        environ = {str(name): str(value) for name, value in prompt.options.get("environ", {}).items()}
        reading = self._understand(without_notes(prompt.instruction))
        asks = prompt.options.get("asks") is True
        self._run = run = _Run(prompt.instruction, reading, Names.for_environment(environ), self._repairs, asks=asks)
        for note in read_notes(prompt.instruction):
            run.hear(note)
        for step in prompt.steps:
            picture = step.images[-1] if step.images else None
            scene = self._scene(step.outline, picture)
            run.decide(scene, step.changes, scene.outline.size if picture is None else picture.size)
            run.take(step)
        return run

    def _scene(self, outline: Outline | None, picture: EncodedImage | None) -> Scene:
        if picture is None:
            return Scene(outline or Outline(Size(1, 1), ()))

        def shown() -> "Image":
            from PIL import Image

            return Image.open(io.BytesIO(picture.data)).convert("RGB")

        return Scene(outline or Outline(picture.size, ()), shown)


@dataclass
class _Reached:
    """A goal that was reached."""

    goal: Goal
    done: Done
    known: Sequence[Change]  # the changes before it


class _Run:
    """One run: its goals, and the steps of the current goal."""

    def __init__(
        self, instruction: str, reading: Reading, names: Names, repairs: dict[int, Target] | None, *, asks: bool
    ) -> None:
        self.now = Now(Scene(Outline(Size(1, 1), ())), names=names, asks=asks, repairs=repairs)
        self._instruction, self._goals, self._by = instruction, list(reading.goals), reading.by
        self._unclear: list[str] = []  # messages of the person that were not understood
        self._said: list[str] = []  # sentences for the next answer's thought
        self._reached: list[_Reached] = []  # without the goals that the person did not want
        self._dry = False  # a dry run: steps are reported, not carried out
        self._steps = self._follow()
        self._step: Step | None = None  # the last answer, until it is carried out
        self._move: Move | None = None  # the last answer after it was carried out
        self._end: Reply | None = None

    def awaits(self, prompt: PromptRequest) -> bool:
        """Return whether a request follows directly on the last answer, which was carried out."""
        if self._step is None or self._instruction != prompt.instruction:
            return False
        return len(prompt.steps) == len(self.now.moves) + 1

    def take(self, past: PastStep) -> None:
        """Record that the last answer was carried out, with its replies and notes."""
        if self._step is None:
            return
        notes = [note for text in past.replies for note in read_notes(text)]
        reply = next(filter(None, map(without_notes, past.replies)), "")
        self._move = Move(self._step, self.now.scene, self.now.changes, tuple(notes), reply)
        self.now.moves.append(self._move)
        self._step = None
        for note in notes:
            self.hear(note)

    def hear(self, note: Note) -> None:
        """Append the goals that the person states during the run."""
        if note.kind != "said" or _SKIP.match(note.detail):
            return
        try:
            self._goals += read_instruction(_INSTEAD.sub("", note.detail))
        except NotUnderstoodError:
            self._unclear.append(note.detail)

    def decide(self, scene: Scene, changes: Sequence[Change], image: Size) -> Reply:
        """Return the next answer for a screen."""
        if self._end is not None:
            return self._end
        self.now.scene, self.now.changes, self.now.image = scene, changes, image
        self._said = []
        move, self._move = self._move, None
        if move is not None and self._is_unclear(move):
            self._said.append(f"I cannot follow what you say; I understand English: {UNDERSTOOD}.")
        try:
            self._step = step = next(self._steps) if move is None else self._steps.send(move)
        except StopIteration as end:
            self._end = end.value
            return self._end
        return Reply(" ".join([*self._said, step.words]), dict(step.call))

    @property
    def until(self) -> Callable[[], object] | None:
        """The check whether a screen shows what the last answer was done for, see `Step.until`."""
        return None if self._step is None else self._step.until

    def shows_awaited(self, scene: Scene) -> bool:
        """Return whether a screen shows what the last answer was done for."""
        before, self.now.scene = self.now.scene, scene
        try:
            return self.until is not None and bool(self.until())
        except StuckError:
            return False
        finally:
            self.now.scene = before

    def _is_unclear(self, move: Move) -> bool:
        return any(note.kind == "said" and note.detail in self._unclear for note in move.notes)

    def _follow(self) -> Generator[Step, Move, Reply]:
        """Yield the steps of the run; return its final answer."""
        part = 0
        if self._by and not (yield from self._agreed()):
            return self._fail("So I did nothing.")
        while part < len(self._goals):  # the person may add goals meanwhile
            known = self.now.changes
            try:
                done = yield from self._pursue(part)
            except (StuckError, WhichError) as error:
                return self._fail(str(error))
            if done is None:
                self._said.append(f"You did not want this: {describe_goal(self._goals[part])}.")
            else:
                self._said.append(f"{done.words[:1].upper()}{done.words[1:]}.")
                self._reached.append(_Reached(self._goals[part], done, known))
            part += 1
            if part == len(self._goals):
                yield from self._look_once_more()
        return self._finish()

    def _agreed(self) -> Steps[bool]:
        """Show a model's reading of the instruction. Return whether the person agrees, if they are to be asked."""
        read = "; ".join(f"{number}) {describe_goal(goal)}" for number, goal in enumerate(self._goals, 1))
        message = f"I do not understand the sentence myself. {self._by} reads it as: {read}."
        if not self.now.asks:
            self._said.append(message)
            return True
        agreed = yield from agrees(message, f"{message} Shall I do that?")
        self._said.append(f"You {'agreed' if agreed else 'did not agree'} to what {self._by} read.")
        return agreed

    def _look_once_more(self) -> Steps[None]:
        """Wait for evidence of goals that have none yet: settings, files and the clipboard are reported late."""
        for left in () if self._dry or self._is_recipe() else (1, 0):  # a recipe has waited for what it expects
            for one in self._unverified():
                if change := shown_late(self.now, one.goal, one.known, one is self._reached[-1]):
                    one.done = Done(change)
                    self._said.append(f"{change}.")
            if not left or not self._unverified():
                return
            yield Step.wait("Nothing shows all of it yet: wait and look once more.", _LATE)

    def _pursue(self, part: int) -> Steps[Done | None]:
        """Yield the steps for a goal, within the limits; return None if the person does not want it."""
        now, goal = self.now, self._goals[part]
        now.begun, now.answer, now.anywhere = len(now.moves), None, False
        steps = pursue(now, goal)
        move: Move | None = None
        busy = 0
        while True:
            now.last = part == len(self._goals) - 1
            now.following = None if now.last else self._goals[part + 1]
            if len(now.moves) - now.begun >= _MOST_MOVES:
                raise StuckError(f"After {_MOST_MOVES} actions I give up to {describe_goal(goal)}.")
            if busy < _MOST_BUSY and self._is_busy(goal):
                busy += 1
                waited = yield Step.wait(
                    "The window in front is busy and does not report its contents yet: wait.", _BUSY
                )
                if waited.denied or waited.skipped or waited.has("dry_run"):
                    return self._interrupted(goal, waited)
                continue
            step: Step | Done | None = None
            try:
                step = next(steps) if move is None else steps.send(move)
            except StopIteration as end:
                step = end.value
            except StuckError:
                if not self._dry or self._is_known(part, None):
                    raise
            if self._dry and not self._is_known(part, step):
                return Done(
                    f"how to {describe_goal(goal)} cannot be known before the rest is really done", verified=False
                )
            if not isinstance(step, Step):
                return step
            move = yield step
            if move.denied or move.skipped or move.has("dry_run"):
                return self._interrupted(goal, move)
            if (
                move.has("changed") and isinstance(goal, _ON_SCREEN) and move.action != "type"
            ):  # its new text is expected
                return Done(f"you changed a step to {describe_goal(goal)}, so nothing here proves it", verified=False)

    def _interrupted(self, goal: Goal, move: Move) -> Done | None:
        """End a goal whose step was not carried out; return None if the person does not want it."""
        if move.denied:
            why = move.failure  # nobody could be asked
            raise StuckError(f"{why}." if why else f"You did not allow this: {describe_goal(goal)}.")
        if move.skipped:
            if self._is_unclear(move):  # the person's message was not understood: the run must not continue
                raise StuckError("So I stop, as you did not allow what I would do.")
            return None
        self._dry = True  # a dry run shows no effect, so the rest of the goal is unknown
        return Done(f"the next steps to {describe_goal(goal)} depend on the result of this step", verified=False)

    def _is_known(self, part: int, step: Step | Done | None) -> bool:
        """Return whether a later goal of a dry run starts independently of the steps that were only reported."""
        goal = self._goals[part]
        if isinstance(goal, _INDEPENDENT) or (isinstance(goal, goals.Type) and goal.into is None):
            return True
        untouched = not any(isinstance(one, _TOUCHING) for one in self._goals[:part])
        return untouched and isinstance(step, Step) and step.main

    def _is_busy(self, goal: Goal) -> bool:
        """Return whether the front window may still report its elements, so that the engine must wait for them."""
        scene = self.now.scene
        if not self.now.moves and UNANSWERED in scene.outline.lacks and not isinstance(goal, _NEEDS_NO_ELEMENTS):
            return True
        needs_none = isinstance(goal, _NEEDS_NO_ELEMENTS) and not (
            isinstance(goal, goals.Open) and goal.kind == "settings"
        )
        if not scene.is_late or needs_none:  # an application's settings are looked for in its menus
            return False
        if any(move.action == "open" for move in self.now.moves):
            return True
        told = (move.scene for move in self.now.moves if move.scene.has_tree and not move.scene.is_late)
        windows = {(one.front.app, one.front.title) for one in told if one.front is not None}
        return scene.front is not None and (scene.front.app, scene.front.title) in windows

    def _fail(self, words: str) -> Reply:
        return _give_up(" ".join([*self._said, words]), self._reached)

    def _finish(self) -> Reply:
        if not self._reached:
            return self._fail("Nothing else was to be done.")
        if self._dry:
            words = " ".join([*self._said, "Dry run: later steps cannot be known."])
            return Reply(words, {"action": "answer", "text": words})
        unproven = self._unverified()
        if not unproven:
            done = "; ".join(describe_goal(one.goal) for one in self._reached)
            all_parts = "All parts" if len(self._reached) == len(self._goals) else "All other parts"
            self._said.append(f"{all_parts} are done: {done}.")
        elif not self._is_recipe():
            steps = "; ".join(f"{one.done.words[:1].upper()}{one.done.words[1:]}" for one in unproven)
            self._said.append(f"I did what was asked, but nothing proves that it took effect: {steps}.")
        if self._unclear:  # it may have been another wish
            self._said.append(f"You also said “{'”, “'.join(self._unclear)}”, which I could not follow.")
        already = [describe_goal(one.goal) for one in self._reached if isinstance(one.done, Already)]
        verified = not unproven and not self._unclear
        return _end("success", " ".join(self._said), self._reached, verified=verified, already=already)

    def _is_recipe(self) -> bool:
        return any(isinstance(one.goal, goals.Repeat) for one in self._reached)

    def _unverified(self) -> list[_Reached]:
        """Return the reached goals that nothing proves. A goal that only leads to the next is proved by the next."""
        summed = shown_by_sum([(one.goal, one.done) for one in self._reached])
        return [
            one
            for at, one in enumerate(self._reached)
            if not (one.done.verified or at in summed)
            and not (_leads(one) and next((later.done.verified for later in self._reached[at + 1 :]
                                           if not _leads(later)), False))
        ]  # fmt: skip


def _leads(reached: _Reached) -> bool:
    return reached.done.on_the_way or leads(reached.goal)


def _give_up(words: str, reached: Sequence[_Reached]) -> Reply:
    return _end("fail", words, reached, verified=False)


def _end(status: str, words: str, reached: Sequence[_Reached], *, verified: bool, already: Sequence[str] = ()) -> Reply:
    evidence = [one.done.words for one in reached if one.done.verified]
    call = {"action": "terminate", "status": status, "text": words, "evidence": evidence, "verified": verified}
    return Reply(words, {**call, "already": already} if already else call)
