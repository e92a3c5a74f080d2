"""MAI-UI as a `Family`: its data from `family.toml`, its prompt and its parser together."""

from dataclasses import dataclass, field

from agent.families.base import Decision, FamilyFacts, ParseFailure, PromptRequest, Style
from agent.families.mai_ui.arguments import Vocabulary
from agent.families.mai_ui.parser import parse_grounding, parse_navigation
from agent.families.mai_ui.prompt import grounding_messages, navigation_messages
from agent.geometry import Grid, Size
from agent.model.messages import Message
from agent.model.request import Sampling
from agent.screen.encode import EncodedImage
from foundation.families import family_data, image_rule

NAME = "mai-ui"


def _facts() -> FamilyFacts:
    data = family_data(NAME)
    return FamilyFacts(
        name=NAME,
        image=image_rule(NAME),
        image_format=data["image"]["format"],
        quality=data["image"]["quality"],
        sampling=Sampling(**data["sampling"]),
        reference_images=data["history"]["images"],
        detect=tuple(data["detect"]["names"]),
    )


def _vocabulary() -> Vocabulary:
    data = family_data(NAME)
    return Vocabulary(
        grid=Grid.relative(data["grid"]["navigation"]),
        swipe_notches=data["swipe"]["notches"],
        swipe_turns={name: data["swipe"][name] for name in ("up", "down", "left", "right")},
        system_buttons={name: tuple(keys) for name, keys in data["system_button"].items()},
    )


@dataclass(frozen=True, slots=True)
class MaiUi:
    """The MAI-UI family, 2B to 32B."""

    facts: FamilyFacts = field(default_factory=_facts)
    vocabulary: Vocabulary = field(default_factory=_vocabulary)
    grounding_grid: Grid = field(default_factory=lambda: Grid.relative(family_data(NAME)["grid"]["grounding"]))

    def messages(self, request: PromptRequest) -> list[Message]:
        """The chat messages of a navigation request."""
        return navigation_messages(request)

    def grounding_messages(self, instruction: str, image: EncodedImage | None) -> list[Message]:
        """The chat messages that ask for one point."""
        return grounding_messages(instruction, image)

    def parse(self, text: str, sent: Size) -> Decision | ParseFailure:  # noqa: ARG002 -- the grid is relative
        """The decision in a navigation answer."""
        return parse_navigation(text, self.vocabulary)

    def parse_grounding(self, text: str, sent: Size) -> Decision | ParseFailure:  # noqa: ARG002
        """The point in a grounding answer, as a click."""
        return parse_grounding(text, self.grounding_grid)

    def feedback(self, failure: ParseFailure) -> str:
        """What to tell the model after an answer that gave no action."""
        return (
            f"That answer cannot be carried out: {failure.message}. Nothing was done. Answer again in the Output "
            "Format, with exactly one complete <tool_call>."
        )

    def constraint(self, style: Style, thinking: bool) -> str:
        """A regular expression of valid answers, for constrained decoding."""
        number = "([0-9]|[1-9][0-9]|[1-9][0-9][0-9])"
        point = rf"\[{number}, {number}\]"
        text = r'"[^"\\\n]{1,300}"'
        way = '"(up|down|left|right)"'
        pointing = "click|double_click|long_press"
        moving = rf'"swipe", "direction": {way}(, "coordinate": {point})?'
        if style == "desktop":
            pointing += "|triple_click|right_click|middle_click|move"
            moving = rf'"scroll", "direction": {way}, "amount": [1-9](, "coordinate": {point})?'
        choices = [
            rf'"({pointing})", "coordinate": {point}',
            moving,
            rf'"drag", "start_coordinate": {point}, "end_coordinate": {point}',
            f'"(type|open|answer|ask_user)", "text": {text}',
            '"wait"',
            '"terminate", "status": "(success|fail)"',
        ]
        if style == "desktop":
            choices.append(r'"key", "keys": "[a-z0-9_+]{1,30}"')
        arguments = rf'\{{"action": ({"|".join(choices)})\}}'
        call = rf'<tool_call>\n\{{"name": "mobile_use", "arguments": {arguments}\}}\n</tool_call>'
        return (r"<thinking>\n[^<]{1,600}\n</thinking>\n" if thinking else "") + call


def create() -> MaiUi:
    """The family, as the registry asks for it."""
    return MaiUi()
