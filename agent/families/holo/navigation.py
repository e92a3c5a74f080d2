"""Holo1, Holo1.5 and Holo2 as families: one JSON object with note, thought and action.

A request shows one step: the task and the screenshot in one user message, without history. The style `reference`
follows utils/navigation.py of hcompai/hai-cookbook. The style `desktop` adds the earlier steps in words.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent.families.base import Acts, ArgumentError, Call, ParseFailure, PromptRequest
from agent.families.holo import tools
from agent.families.shared.answer_parts import AnswerParts
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.lenient_json import only_object
from agent.families.shared.text_family import Read, TextFamily, thought_in
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage


class HoloNavigation(TextFamily):
    """A family of Holo's first generations. Its `family.toml` defines the grounding request (`[localisation]`)."""

    shared_texts = Path(__file__).with_suffix(".toml")

    @override
    def request(self, prompt: PromptRequest) -> ChatRequest:
        desktop = prompt.options.get("style", "desktop") != "reference"
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
        try:
            value = only_object(parts.text, lambda one: "action" in one)
            action = value["action"]
            flat = dict(action) if isinstance(action, Mapping) else {k: v for k, v in value.items() if k != "thought"}
            name = flat.pop("action", None)
            if not isinstance(name, str) or not name.strip():
                raise ArgumentError("bad_argument", 'the action has no name in "action"')
        except ArgumentError as error:
            return parts.thought, ParseFailure(error.kind, str(error)), 1
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
