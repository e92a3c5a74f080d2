"""Holo's models as families: the first generations, and from Holo3 on."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent.families.base import Acts, ArgumentError, Call, PastStep, PromptRequest
from agent.families.holo import tools
from agent.families.shared.answer_parts import AnswerParts, take_apart
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.lenient_json import only_object
from agent.families.shared.named_calls import xml_calls
from agent.families.shared.text_family import Read, TextFamily, in_turn, joined, thought_in
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import ToolCall


class HoloNavigation(TextFamily):
    """Holo1, Holo1.5 and Holo2: one JSON object with note, thought and action.

    A request shows one step: the task and the screenshot in one user message, without history. The style `reference`
    follows utils/navigation.py of hcompai/hai-cookbook. The style `desktop` adds the earlier steps in words. Its
    `family.toml` defines the grounding request (`[localisation]`).
    """

    shared_texts = Path(__file__).with_name("navigation.toml")

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        desktop = not prompt.reference
        schema = self._schema(desktop=desktop)
        system = prompt.system_prompt
        if system is None:
            system = self.texts["system"].strip().replace("{schema}", json.dumps(schema))
            if desktop and prompt.apps:
                apps = self.texts["apps"].replace("{apps}", ", ".join(prompt.apps))
                system = system.replace("\n\n# <output", f"\n{apps}\n\n# <output")
        number = prompt.skipped + len(prompt.steps) + 1
        memory = _memory(prompt, self.texts) if desktop else ""
        parts: tuple[TextPart | ImagePart, ...] = (
            TextPart(f"<task>\n{prompt.instruction}\n</task>\n"),
            *([TextPart(memory)] if memory else []),
            TextPart(f"<observation step={number}>\n"),
            TextPart("<screenshot>\n"),
            *map(ImagePart, prompt.images),
            TextPart("\n</screenshot>\n"),
            TextPart("\n</observation>\n"),
        )
        messages = [Message.text("system", system), Message("user", parts)]
        return ChatRequest(messages, self.facts.sampling, schema=schema)

    def act(self, call: Call, words: Vocabulary) -> Acts:
        """Return the actions of a call. Raises ArgumentError.

        Writing replaces the old text and presses Enter, as in the published client (hcompai/surfer-h-cli, surferh.py).
        """
        arguments = _flat(call)
        name = str(arguments.pop("action"))
        tool = self.texts["tools"].get(name.lower(), name)
        if tool == "write_at":
            arguments = {"overwrite": True, "press_enter": True, **arguments}
        return tools.read_tool(Call(tool, arguments), words)

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the single action of an object."""
        value = only_object(parts.text, lambda one: "action" in one)
        action = value["action"]
        flat = dict(action) if isinstance(action, Mapping) else {k: v for k, v in value.items() if k != "thought"}
        name = flat.pop("action", None)
        if not isinstance(name, str) or not name.strip():
            raise ArgumentError("bad_argument", 'the action has no name in "action"')
        return thought_in(value, parts), [Call(name.strip()[:200], flat)], 1

    @override
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        return json.dumps({"note": "", "thought": thought, "action": _flat(calls[0])}, ensure_ascii=False)

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        schema = self.data["localisation"].get("schema")
        text = self.texts["localisation"]["text" if schema is None else "json"].lstrip("\n")
        question = TextPart(f"{text.replace('{schema}', json.dumps(schema))}\n{instruction}")
        return replace(self.asking(ImagePart(image), question, schema=schema), sampling=tools.GREEDY)

    def _schema(self, *, desktop: bool) -> dict[str, Any]:
        offered = [one for one in self.texts["actions"] if not one.get("published_only" if desktop else "ours", False)]
        fields = {
            "note": {
                "type": "string",
                "description": "what the observation says for the task; may be empty",
            },
            "thought": {"type": "string", "description": "reasoning about the next step, less than four lines"},
            "action": {"anyOf": [self._action_schema(one) for one in offered]},
        }
        return {"type": "object", "properties": fields, "required": list(fields)}

    def _action_schema(self, action: Mapping[str, Any]) -> dict[str, Any]:
        needs = {name: self._parameter(name) for name in action["needs"]}
        return {
            "type": "object",
            "description": action["text"],
            "properties": {"action": {"const": action["name"], "type": "string"}, **needs},
            "required": ["action", *needs],
        }

    def _parameter(self, name: str) -> dict[str, Any]:
        values: dict[str, Any] = dict(self.texts["parameters"][name])
        unit = "in pixels of the image" if self.facts.navigation == "pixels" else "from 0 to 1000"
        if "description" in values:
            values["description"] = values["description"].replace("{unit}", unit)
        return values


def _memory(prompt: PromptRequest, texts: Mapping[str, Any]) -> str:
    """Return the earlier steps and their results in words; "" for none."""
    lines = [texts["skipped"].replace("{skipped}", str(prompt.skipped))] if prompt.skipped else []
    for number, step in enumerate(prompt.steps, prompt.skipped + 1):
        thought, action = " ".join(step.thought.split()), json.dumps(_flat(step.calls[0]), ensure_ascii=False)
        note = "".join(f" {reply}" for reply in step.replies)
        lines.append(texts["memory_line"].format(number=number, thought=thought, action=action, note=note))
    return texts["memory"].replace("{lines}", "\n".join(lines)) if lines else ""


def _flat(call: Call) -> dict[str, Any]:
    return dict(call.arguments) if "action" in call.arguments else {"action": call.name, **call.arguments}


_EVICTED = "[screenshot evicted]"
_MOST_CALLS = 5


class Holo3(TextFamily):
    """Holo3, Holo3.1 and Holo4. A run uses one of two formats.

    *Structured*: the answer is one object of a schema. The schema is in the system prompt, and sent as a constraint.
    Past answers are replayed as that object, written anew, and results are user messages.

    *Native*: function calls of the API; results are tool messages. In both formats, an observation is a separate
    message, whose wrapper stays after its screenshot is dropped (hub.hcompany.ai/agent-loop).

    Its options: "format" (`structured` or `native`; default: by the model's name), "batch", "thinking".
    """

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        native, desktop = self._is_native(prompt), not prompt.reference
        declared = tools.declared(desktop=desktop)
        schema = step_schema(declared, batch=bool(prompt.options.get("batch")))
        opening = [Message.text("system", _system(self.texts, prompt, None if native else schema))]
        if prompt.skipped:
            opening.append(Message.text("user", self.texts["skipped"].replace("{skipped}", str(prompt.skipped))))
        quiet = self.texts["done"] if desktop else ""
        messages = in_turn(opening, prompt, lambda step: (_called if native else _told)(step, quiet), _observation)
        return ChatRequest(
            messages,
            self.facts.sampling,
            tools=[{"type": "function", "function": tool} for tool in declared] if native else (),
            tool_choice="required" if native else None,
            schema=None if native else schema,
            reasoning_effort="medium" if prompt.thinking else None,
            template_arguments={"enable_thinking": prompt.thinking},
        )

    def _is_native(self, prompt: PromptRequest) -> bool:
        chosen = prompt.options.get("format")
        if chosen in ("structured", "native"):
            return bool(chosen == "native")
        return any(name in prompt.model.lower() for name in self.data["native"]["names"])

    @override
    def act(self, call: Call, words: Vocabulary) -> Acts:
        return tools.read_tool(call, words)

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the calls of either format, in order."""
        text = parts.text
        if "<function=" in text:  # a native call that the server did not parse
            before, _, _ = text.partition("<tool_call>" if "<tool_call>" in text else "<function=")
            return joined(parts.thought, before.strip()), xml_calls(text), None
        value = only_object(text, _is_step, "tool call")
        written = value.get("tool_calls", value.get("tool_call", value))
        calls = [tools.unflat(one) for one in (written if isinstance(written, list) else [written])]
        if not calls:
            raise ArgumentError("no_action", "the list of tool calls is empty")
        return thought_in(value, parts), calls, None

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer in the structured format."""
        return _dumped({"note": None, "thought": thought, **_flat_calls(calls)})

    @override
    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:
        schema = self.data["localisation"]["schema"]
        text = self.texts["localisation"].strip().replace("{schema}", json.dumps(schema))
        request = self.asking(ImagePart(image), TextPart(f"{text}\n{instruction}"), schema=schema)
        return replace(request, sampling=tools.GREEDY, template_arguments={"enable_thinking": False})


def step_schema(declared: Sequence[Mapping[str, Any]], *, batch: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of a step: one flat call, or an array of them.

    A note is required in every step: models that leave the first note empty leave all of them empty.
    """
    call = {"anyOf": [tools.flat_schema(tool) for tool in declared]}
    calls = {"type": "array", "items": call, "minItems": 1, "maxItems": _MOST_CALLS}
    name = "tool_calls" if batch else "tool_call"
    note = {"type": "string", "minLength": 1, "description": "facts from the observation that later steps need"}
    thought = {"type": "string", "description": "reasoning about the next step, a line"}
    return {
        "type": "object",
        "properties": {"note": note, "thought": thought, name: calls if batch else call},
        "required": ["note", "thought", name],
        "additionalProperties": False,
    }


def _system(texts: Mapping[str, str], prompt: PromptRequest, schema: Mapping[str, Any] | None) -> str:
    """Return the system prompt: the user's replacement or ours, then the task, and the schema of the answer."""
    sections = [texts["role"].strip()] if prompt.system_prompt is None else [prompt.system_prompt]
    if prompt.system_prompt is None:
        several = schema is not None and "tool_calls" in schema["properties"]
        manner = texts["native" if schema is None else "structured"]
        sections.append(manner.strip().replace("{calls}", texts["batch" if several else "one"]))
        if prompt.apps and not prompt.reference:
            sections.append(texts["apps"].replace("{apps}", ", ".join(prompt.apps)))
    if prompt.tools:
        sections.append("# Further tools\n" + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in prompt.tools))
    sections.append(f"<task>\n{prompt.instruction}\n</task>")
    if schema is not None:
        sections.append(f"<output_format>\n```json\n{json.dumps(schema)}\n```\n</output_format>")
    return "\n\n".join(sections)


def _observation(images: Sequence[EncodedImage | None], after: PastStep | None) -> Iterable[Message]:  # noqa: ARG001
    """Return an observation message. Without a screenshot, the wrapper stays."""
    shown = [ImagePart(image) for image in images] if images else [TextPart(_EVICTED)]
    return [Message("user", (TextPart("<observation>\n"), *shown, TextPart("\n</observation>")))]


def _told(step: PastStep, quiet: str) -> Iterator[Message]:
    """Yield a past step in the structured format: the object, and the result of each tool."""
    yield Message.text("assistant", _dumped(_object(step)))
    results = [quiet] * len(step.calls)
    if texts := [text for text in (step.tool_result, step.note) if text]:
        results[-1] = " ".join(texts)
    for call, result in zip(step.calls, results, strict=True):
        name = str(tools.flat(call)["tool_name"]).replace('"', "'")
        yield Message.text("user", f'<tool_output tool="{name}">\n{result}\n</tool_output>')
    if step.user_reply:
        yield Message.text("user", f'<message from="user">\n{step.user_reply}\n</message>')


def _called(step: PastStep, quiet: str) -> Iterator[Message]:
    """Yield a past step in the native format: the calls with their text, and a result for each."""
    made: list[ToolCall] = []
    for number, call in enumerate(step.calls, 1):
        arguments = tools.flat(call)
        name = str(arguments.pop("tool_name"))
        made.append(ToolCall(call.id or f"call-{number}", name, json.dumps(arguments, ensure_ascii=False)))
    text = step.answer.content.strip() if step.answer is not None and step.answer.tool_calls else ""
    yield Message("assistant", (TextPart(text),) if text else (), tool_calls=tuple(made))
    for number, one in enumerate(made, 1):
        result = " ".join(step.replies) if number == len(made) else ""
        yield Message.result(one.id, TextPart(result or quiet))


def _object(step: PastStep) -> dict[str, Any]:
    """Return the object of a past answer, as parsed and not as written."""
    note: Any = None
    with suppress(ArgumentError):
        note = None if step.answer is None else only_object(take_apart(step.answer).text, _is_step).get("note")
    calls = list(step.calls)
    if len(calls) == 1 and isinstance(calls[0].arguments.get("tool_call"), Mapping):  # a whole step, given as an action
        note = calls[0].arguments.get("note", note)
        calls = [Call("", calls[0].arguments["tool_call"])]
    return {"note": note, "thought": step.thought, **_flat_calls(calls)}


def _flat_calls(calls: Sequence[Call]) -> dict[str, Any]:
    flat = [tools.flat(call) for call in calls]
    return {"tool_call": flat[0]} if len(flat) == 1 else {"tool_calls": flat}


def _dumped(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_step(value: Mapping[str, Any]) -> bool:
    return any(name in value for name in ("tool_call", "tool_calls", "tool_name")) or (
        "name" in value and "arguments" in value
    )
