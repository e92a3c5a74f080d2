"""`mai-agent replay RUN`: the decisions of a recorded run again, without a model; dry unless --live is given."""

import asyncio
from collections.abc import Sequence

from agent.commands.arguments import add_recorded_run, open_own_desktop, recorded_run, tell
from agent.commands.runs import receipt_lines
from agent.console.terminal import Console
from agent.core.actions import TOUCHING, Wait, describe
from agent.core.actions import to_json as action_json
from agent.desktop.input.hand import RecordingHand
from agent.desktop.protocol.hand import ActionFailedError, Hand
from agent.events.fates import WORDS
from agent.record.replay import ReplayedStep, replay_as_recorded
from agent.safety.policy import Question
from agent.safety.stop import StopSwitch, stop_signals
from foundation.command_line import Parser
from foundation.errors import ExitStatus, UsageError
from foundation.printing import put
from foundation.stray_output import stray_output_kept


@stray_output_kept()
def main(argv: Sequence[str]) -> int:
    """Replay it; status 1 when a decision comes out otherwise than it was recorded."""
    parser = Parser(
        prog="mai-agent replay",
        description="Run the decisions of a recorded run through parser, map and policy again, without a model.",
    )
    add_recorded_run(parser)
    parser.add_argument("--live", action="store_true", help="carry the actions out on this desktop, without looking")
    parser.add_argument("--json", action="store_true", help="one object per line")
    options = parser.parse_args(argv)
    bundle = recorded_run(options)
    if options.live and bundle.run.sandbox:
        raise UsageError("This run was made in a sandbox; its places mean nothing on this desktop.", "Replay it dry.")
    stop = StopSwitch()
    same = True
    with stop_signals(stop):
        hand = _live_hand(stop) if options.live else RecordingHand()
        console = Console(stop)
        try:
            for step in replay_as_recorded(bundle):
                stop.check()
                allowed = not options.live or _allowed(step, console)
                detail = _perform(step, hand, stop) if allowed else "not carried out now"
                same = same and step.same
                tell(options.json, _json(step, detail), _line(step, detail))
        finally:
            hand.close()
    if not options.json:
        put(*receipt_lines(bundle.run.receipt, "what the recorded run changed"))
    return ExitStatus.DONE if same else ExitStatus.NOT_DONE


def _allowed(step: ReplayedStep, console: Console) -> bool:
    """Whether a live replay may carry a step out: it was carried out before, and the person agrees if it is risky."""
    action = step.changed or step.target
    if step.fate != "done" or action is None:
        return False
    reason = step.reason_to_ask if step.changed is None else step.changed_reason
    return reason is None or asyncio.run(console.approve(action, Question(reason, ""))).allowed


def _live_hand(stop: StopSwitch) -> Hand:
    desktop = open_own_desktop(stop)
    desktop.screen.close()  # nothing is looked at
    return desktop.hand


def _perform(step: ReplayedStep, hand: Hand, stop: StopSwitch) -> str:
    action = step.changed or step.target  # what was carried out, where the person changed it
    if isinstance(action, Wait) and hand.touches:
        stop.sleep(action.seconds)
    if not isinstance(action, TOUCHING):
        return ""
    try:
        detail = hand.perform(action)
    except ActionFailedError as error:
        return f"failed: {error}"
    if hand.touches:
        stop.sleep(0.5)  # nothing is watched in a replay: give the desktop a moment
    return detail


def _line(step: ReplayedStep, detail: str) -> str:
    what = step.failure if step.target is None else describe(step.target)
    done = step.changed or step.target
    parts = [f"step {step.step}: {what}"]
    if step.reason_to_ask:
        parts.append(f"would ask: {step.reason_to_ask}")
    if step.changed is not None:
        parts.append(f"you changed it to: {step.changed_words}")
    if step.changed_reason:
        parts.append(f"would ask about that too: {step.changed_reason}")
    if step.target is not None and step.fate not in ("done", "dry run", "said"):
        parts.append(WORDS[step.fate])
    if detail and (done is None or detail not in (describe(done), f"would {describe(done)}")):
        parts.append(detail)
    if step.hit:
        parts.append(f"was on {step.hit}")
    if not step.same:
        parts.append("differs from the recorded action")
    return " · ".join(parts)


def _json(step: ReplayedStep, detail: str) -> dict[str, object]:
    told: dict[str, object] = {
        name: getattr(step, name)
        for name in ("step", "thought", "target", "changed", "failure", "reason_to_ask", "same", "fate", "hit")
    }
    told["target"] = None if step.target is None else action_json(step.target)
    told["changed"] = None if step.changed is None else action_json(step.changed)
    return told | {"detail": detail}
