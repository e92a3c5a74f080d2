"""`mai-agent replay RUN`: the decisions of a recorded run again, without a model; nothing is touched."""

from collections.abc import Sequence

from agent.commands.arguments import add_recorded_run, recorded_run, tell
from agent.commands.runs import receipt_lines
from agent.core.actions import TOUCHING, describe
from agent.core.actions import to_json as action_json
from agent.events.fates import WORDS
from agent.record.replay import ReplayedStep, replay_as_recorded
from foundation.command_line import Parser
from foundation.errors import ExitStatus
from foundation.printing import put
from foundation.stray_output import stray_output_kept


@stray_output_kept()
def main(argv: Sequence[str]) -> int:
    """Replay it; status 1 when a decision differs from the recording."""
    parser = Parser(
        prog="mai-agent replay",
        description="Run the decisions of a recorded run through parser, map and policy again, without a model.",
    )
    add_recorded_run(parser)
    parser.add_argument("--json", action="store_true", help="one object per line")
    options = parser.parse_args(argv)
    bundle = recorded_run(options)
    same = True
    for step in replay_as_recorded(bundle):
        same = same and step.same
        tell(options.json, _json(step), _line(step))
    if not options.json:
        put(*receipt_lines(bundle.run.receipt, "what the recorded run changed"))
    return ExitStatus.DONE if same else ExitStatus.NOT_DONE


def _line(step: ReplayedStep) -> str:
    action = step.failure if step.target is None else describe(step.target)
    parts = [f"step {step.step}: {action}"]
    if step.reason_to_ask:
        parts.append(f"would ask: {step.reason_to_ask}")
    if step.changed is not None:
        parts.append(f"you changed it to: {step.changed_words}")
    if step.changed_reason:
        parts.append(f"would ask about that too: {step.changed_reason}")
    if step.target is not None and step.fate not in ("done", "dry run", "said"):
        parts.append(WORDS[step.fate])
    if step.hit:
        parts.append(f"was on {step.hit}")
    if not step.same:
        parts.append("differs from the recorded action")
    return " · ".join(parts)


def _json(step: ReplayedStep) -> dict[str, object]:
    data: dict[str, object] = {
        name: getattr(step, name)
        for name in ("step", "thought", "target", "changed", "failure", "reason_to_ask", "same", "fate", "hit")
    }
    data["target"] = None if step.target is None else action_json(step.target)
    data["changed"] = None if step.changed is None else action_json(step.changed)
    action = step.changed or step.target  # what was carried out, if the person changed it
    return data | {"detail": f"would {describe(action)}" if isinstance(action, TOUCHING) else ""}
