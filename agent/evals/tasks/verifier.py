"""Asks a model whether a run did its task. The model sees the task, the changes, and the screen before and after.

Its verdicts are kept in `verifier.jsonl`, and compared with those of the judges in the report.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.evals.grounding import OF_ONE, WITHOUT_ANSWER
from agent.evals.tasks.report import TaskVerdict
from agent.families.base import ParseFailure
from agent.families.shared.answer_parts import as_text, take_apart
from agent.families.shared.lenient_json import first_object
from agent.model.asking import ModelClient
from agent.model.refusals import ModelError
from agent.model.request import ChatRequest, ImagePart, Message, Sampling, TextPart
from agent.record.read import Bundle, read_bundle
from agent.screen.encode import encode, open_foreign
from foundation.chat_stream import Answer
from foundation.errors import UsageError
from foundation.files import JsonLines, read_lines

#: The file of its verdicts, in the folder of an evaluation.
FILE = "verifier.jsonl"
_WHAT = "a verifier's verdict on a run"
#: Most failures in a row that do not end the call.
_MOST_IN_A_ROW = 3
_SYSTEM = """\
You check work that was done on a desktop computer. You get the task, what changed on the computer, the screen before \
it and the screen after it. Answer with one JSON object: {"done": true} if all of the task is done and nothing else \
was changed; {"done": false} if a part of it is missing, or if you cannot tell."""
_FORM = {
    "type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"], "additionalProperties": False,
}  # fmt: skip


async def verify(
    client: ModelClient, model: str, verdicts: Sequence[TaskVerdict], out: Path, tell: Callable[[str], None]
) -> int:
    """Ask about the judged runs that this model was not asked about yet. Raises MaiError: it cannot be asked.

    The next call repeats failed requests. Return the number of failed requests. Raises MaiError also after too many
    failures in a row; refusals count only before the first answer.
    """
    known, in_a_row, failed = read_verifier(out, model), 0, 0
    with JsonLines(out / FILE, _WHAT, lambda line: line["id"], "verifier") as kept:
        waiting = [one for one in verdicts if one.judged and one.id not in known]
        for number, one in enumerate(waiting, 1):
            try:
                bundle = read_bundle(out / one.bundle)
            except UsageError:  # its folder was removed
                continue
            try:
                said = as_text((await client.complete(_request(one.say, bundle), lambda _: None)).answer)
            except ModelError as error:
                in_a_row += error.kind not in WITHOUT_ANSWER or not known
                if error.kind not in OF_ONE | {"overloaded"} or in_a_row > _MOST_IN_A_ROW:
                    raise
                failed += 1
                tell(f"{one.id}: no answer: {error}")
                continue
            in_a_row = 0
            known[one.id] = {}
            kept.append({"id": one.id, "model": model, "says": _says(said), "answer": said})
            tell(f"{number} of {len(waiting)}: {one.id}")
    return failed


def read_verifier(out: Path, model: str | None = None) -> dict[str, dict[str, bool | None]]:
    """Return what models said of each run, by run and model; of one model only, if it is named. Raises UsageError."""
    found: dict[str, dict[str, bool | None]] = {}

    def take(line: Mapping[str, Any]) -> None:
        if model in (None, line["model"]):
            found.setdefault(line["id"], {})[line["model"]] = line["says"]

    if (out / FILE).is_file():
        read_lines(out / FILE, _WHAT, take)
    return found


def _request(say: str, bundle: Bundle) -> ChatRequest:
    receipt = bundle.run.receipt
    changed = "It is not known what changed." if receipt is None or not receipt.watched else "Nothing changed."
    if receipt is not None and receipt.changes:
        changed = "\n".join(["What changed:", *(f"- {change}" for change in receipt.receipt.changes)])
    parts: list[TextPart | ImagePart] = [TextPart(f"The task: {say}\n{changed}")]
    pictures = [step.image for step in bundle.steps if step.image is not None]
    for title, picture in (("The screen before:", pictures[:1]), ("The screen after:", pictures[-1:])):
        for image in picture:
            data = (bundle.path / image.file).read_bytes()
            parts += [TextPart(title), ImagePart(encode(open_foreign(data, ("PNG", "JPEG", "WEBP")), "jpeg"))]
    chat = (Message.text("system", _SYSTEM), Message("user", tuple(parts)))
    return ChatRequest(chat, Sampling(), schema=_FORM)


def _says(answer: str) -> bool | None:
    """Return whether the answer says that the task is done; None if it says neither."""
    found = first_object(take_apart(Answer(answer)).text, closed=False)
    says = None if isinstance(found, ParseFailure) else found[0].get("done")
    return says if isinstance(says, bool) else None
