"""The JSON Schemas of what is recorded and printed, made from the code: `python scripts/schemas.py [FOLDER]`.

Those of run and step are of the models in `run_record.py` and `step_record.py`, those of `eval tasks` of the models in
`agent/evals/tasks/report.py`; that of an event, a line of `mai-agent --json`, is made from the fields of the events.
"""

import inspect
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Discriminator, Field, TypeAdapter, create_model

from agent.core.actions import KINDS
from agent.core.changes import Change
from agent.core.geometry import DesktopPoint, Viewport
from agent.evals.tasks import report
from agent.evals.tasks.report import TasksReport, TaskVerdict
from agent.events import run_events
from agent.events.as_json import FIRSTS
from agent.events.run_events import SCHEMA, Event, ModelInUse, RunStarted
from agent.families.base import Call, ParseFailure
from agent.record import records, run_record, step_record
from agent.record.records import ACTION_SCHEMA, ActionJson, TokensRecord, ViewportRecord, action_forms
from agent.record.run_record import ChangeRecord, ModelRecord, RunRecord
from agent.record.step_record import (
    AnswerPartsRecord,
    CallRecord,
    DescribedRecord,
    ElementRecord,
    FailureRecord,
    StepRecord,
)
from agent.safety import naming
from agent.screen.encode import EncodedImage
from agent.screen.nearby import Described
from agent.screen.outline import Element
from foundation.chat_stream import Answer, Usage
from foundation.errors import ExitStatus


class SentImage(BaseModel):
    """An image as the model saw it, without its bytes: its size, its format, and a name for its content."""

    width: int
    height: int
    format: str
    digest: str


#: What values of an event become in JSON.
_FORMS: dict[Any, Any] = {
    EncodedImage: SentImage, Viewport: ViewportRecord, Usage: TokensRecord, ParseFailure: FailureRecord,
    Call: CallRecord, Change: ChangeRecord, Described: DescribedRecord, Element: ElementRecord, ModelInUse: ModelRecord,
    Answer: AnswerPartsRecord, ExitStatus: int, DesktopPoint: tuple[float, float],
}  # fmt: skip


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas by their names."""
    events: Any = Annotated[Union[tuple(map(_event_form, get_args(Event)))], Discriminator("event")]  # noqa: UP007
    types: dict[str, Any] = {
        "run": RunRecord, "step": StepRecord, "event": events, "tasks-report": TasksReport,
        "task-verdict": TaskVerdict,
    }  # fmt: skip
    return {name: _schema(name, form) for name, form in types.items()}


def _schema(name: str, form: Any) -> dict[str, Any]:
    made = TypeAdapter(form).json_schema()
    actions = [action.model_json_schema() for action in action_forms().values()]
    if json.dumps(ACTION_SCHEMA) in json.dumps(made):
        made["$defs"]["Action"] = {"description": "An action; a point is [x, y].", "oneOf": actions}
    for described in (made, *made.get("$defs", {}).values(), *actions):
        _describe_fields(described)
    referring: dict[str, Any] = json.loads(
        json.dumps(made).replace(json.dumps(ACTION_SCHEMA), json.dumps({"$ref": "#/$defs/Action"}))
    )
    title = name.replace("-", " ").title()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | referring | {"title": title}


def _describe_fields(schema: dict[str, Any]) -> None:
    """Give every field the words of the comment at it."""
    for name, words in _comments().get(schema.get("title", ""), {}).items():
        schema["properties"][name]["description"] = words


@cache
def _comments() -> dict[str, dict[str, str]]:
    """The comments at the fields of records and events, by the names of their classes."""
    found: dict[str, dict[str, str]] = {}
    for module in (naming, records, report, run_record, run_events, step_record):
        for name, body in re.findall(r"^class (\w+).*\n((?: {4}.*\n|\n)*)", inspect.getsource(module), re.MULTILINE):
            fields_of_it = re.findall(r"((?: {4}#: .*\n)*) {4}(\w+): .*?(?:  # (.*))?\n", body)
            told = {field: (above.replace("    #: ", " ") or beside) for above, field, beside in fields_of_it}
            found[name] = {field: " ".join(words.split()) for field, words in told.items() if words}
    return found


def write_schemas(folder: Path) -> None:
    """Write each to its file, such as `step.schema.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")


def _event_form(event: type) -> type[BaseModel]:
    hints = get_type_hints(event)
    members: dict[str, Any] = {
        "event": (Literal[event.__name__], ...),
        "schema_": (Literal[SCHEMA], Field(alias="schema")),
        "at": (datetime, ...),
    }
    told = {field.name: _form(hints[field.name]) for field in fields(event) if field.name != "at"}
    told |= {FIRSTS[name]: get_args(form)[0] | None for name, form in told.items() if name in FIRSTS}
    told |= dict.fromkeys(ModelRecord.model_fields, str) if event is RunStarted else {}
    members |= {name: (form, ...) for name, form in told.items()}
    config = ConfigDict(extra="allow")
    return create_model(event.__name__, __doc__=event.__doc__, __config__=config, **members)


def _form(hint: Any) -> Any:
    """The type in JSON of what an event holds."""
    origin, arguments = get_origin(hint), get_args(hint)
    if (origin or hint) in KINDS.values():
        return ActionJson
    if origin in (Union, UnionType):
        return Union[tuple(dict.fromkeys(map(_form, arguments)))]  # noqa: UP007 -- of a tuple
    if origin is tuple:
        return list[_form(arguments[0])]  # type: ignore[misc]  # a type that is known at run time
    if origin in (dict, Mapping):
        return dict[str, _form(arguments[1])]  # type: ignore[misc]  # the same
    return _FORMS.get(hint, hint)


if __name__ == "__main__":
    write_schemas(Path(*sys.argv[1:2] or ["docs/schema"]))
