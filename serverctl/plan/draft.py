"""The settings of one try at a plan while they are decided, and the decisions that all kinds of hardware share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foundation.errors import UsageError
from serverctl.hardware.facts import Gpu
from serverctl.hardware.supported import CannotPlanError
from serverctl.models.model import Model, Precision
from serverctl.plan.goal import Plan, Reason
from serverctl.plan.group import Group
from serverctl.plan.memory import Budget
from serverctl.plan.settings import Settings
from serverctl.plan.tables import Task

#: Contexts worth choosing from. The smallest holds one 1080p screenshot, a prompt and an answer.
CONTEXT_STEPS = (6144, 8192, 12_288, 16_384, 24_576, 32_768, 65_536, 131_072)
#: Tokens of a request beside its screenshots: 1.5k of prompt and history, 2k of answer, some room.
TEXT_TOKENS = 4096
#: What a person who fixed the context must at least leave for prompt and answer beside one screenshot.
LEAST_TEXT_TOKENS = 1024
#: vLLM's own number of slots on a card below 70 GiB; larger ones have more (0.33's arg_utils.py).
_LEAST_SLOTS_OF_VLLM = 256
#: Below this a 16-bit plan gives way to smaller weights with more room. Not earlier where 8 bits are faster, too: what
#: they cost in grounding is not measured.
_GOOD_CONTEXT = 16_384
#: Ways to guess tokens with a second model, which must be named.
WITH_DRAFT_MODEL = ("draft_model", "eagle", "eagle3")


class Draft:
    """Collects knobs with their reasons; a person's own values win, then adjustments, then what is decided here."""

    def __init__(self, task: Task) -> None:
        self.preset = task.preset
        self.values: dict[str, Any] = {}
        self.reasons: dict[str, Reason] = {}
        goal, preset = task.goal, task.preset
        for name, value in preset.settings.items():
            self.put(name, value, f"preset {preset.name}: {preset.about}", "configs/presets")
        for name, value in goal.adjustments.items():
            if name in Settings.__dataclass_fields__:
                self.put(name, value, goal.adjusted_because.get(name, "adjusted after an earlier start"), "repair")
        for name, value in goal.overrides.items():
            self.put(name, value, "your own setting", "you", automatic=False)

    def put(self, name: str, value: Any, text: str, source: str, automatic: bool = True) -> None:
        """Give a knob its value, whatever it had."""
        self.values[name] = value
        self.reasons[name] = Reason(text, source, automatic)

    def has(self, name: str) -> bool:
        """Whether a knob already has a value, or is left to vLLM by the preset."""
        return name in self.values or name in self.preset.leave

    def decide(self, name: str, value: Any, text: str, source: str) -> None:
        """Give a knob its value unless it already has one."""
        if value is not None and not self.has(name):
            self.put(name, value, text, source)

    def drop(self, *names: str) -> None:
        """Take back a preset's values that do not suit this card; a person's own values stay."""
        for name in names:
            if name in self.reasons and self.reasons[name].source == "configs/presets":
                del self.values[name], self.reasons[name]

    def settings(self) -> Settings:
        """Return the knobs so far."""
        return Settings(**self.values)

    def decide_model(self, model: Model, speculation: bool = True) -> None:
        """Decide what follows from the model alone: its parser of thoughts, and how tokens are guessed ahead.

        Raises UsageError for speculative decoding that cannot work.
        """
        if model.reasoning_parser is not None:
            self.drop("reasoning_parser")
            self.decide("reasoning_parser", model.reasoning_parser, f"{model.name} thinks first", "configs/models")
        if speculation:
            self._decide_speculation(model)

    def _decide_speculation(self, model: Model) -> None:
        """A preset's n-grams of the prompt give way to a head that comes with the model."""
        source = "vllm/config/speculative.py"
        if self.values.get("spec_method") != "ngram":
            self.drop("spec_tokens")  # a preset's number is for its n-grams
        elif model.mtp_layers:
            self.drop("spec_method", "spec_tokens")
            text = f"{model.name} comes with a head that guesses the next tokens"
            self.decide("spec_method", "mtp", text, "configs/models")
            if self.values["spec_method"] == "mtp":
                # One layer is asked again for each further token, and errs more often each time.
                self.decide("spec_tokens", 2, "the head is asked twice", source)
        method = self.values.get("spec_method")
        if method in ("ngram", "ngram_gpu", "draft_model"):
            self.decide("spec_tokens", 4, "vLLM asks for a number here", source)
        if method in WITH_DRAFT_MODEL and self.values.get("spec_model") is None:
            raise UsageError(
                f"spec_method={method} needs the model that guesses.",
                "Name it, a small one with the same vocabulary: --set spec_model=ORG/NAME.",
            )

    def bound_slots(self, budget: Budget, smallest: int) -> bool:
        """Bound the slots that a preset leaves to vLLM by the requests of the smallest size that the KV cache holds.

        Return whether that was needed.
        """
        held = max(1, budget.held(smallest))
        if "max_num_seqs" not in self.preset.leave or "max_num_seqs" in self.values or held >= _LEAST_SLOTS_OF_VLLM:
            return False
        text = f"requests of {smallest:,} tokens that the KV cache holds: with more, they would push each other out"
        self.put("max_num_seqs", held, text, "memory formula")
        return True


@dataclass(frozen=True, slots=True)
class Layout:
    """How one server uses its cards."""

    group: Group
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One try: a model on some cards, and the context that it gets there."""

    model: Model
    precision: Precision
    layout: Layout
    settings: Settings
    reasons: Mapping[str, Reason]  # why, by knob
    budget: Budget  # of one card
    context: int  # tokens a request can count on; 0 where nothing fits
    needed: int  # tokens that the wanted screenshots need
    cap: int = 0  # the longest context that was worth having on this card

    @property
    def fits(self) -> bool:
        """Whether a request with the wanted screenshots fits."""
        return self.context >= self.needed

    @property
    def roomy(self) -> bool:
        """Whether the context is long enough to keep 16-bit weights."""
        return self.fits and self.context >= min(_GOOD_CONTEXT, self.cap)

    @property
    def whole(self) -> bool:
        """Whether the context is as long as is worth having on these cards."""
        return self.fits and self.context >= self.cap

    def plan(
        self,
        task: Task,
        replicas: tuple[tuple[Gpu, ...], ...],
        env: Mapping[str, tuple[str, Reason]],
        warnings: Sequence[str],
        notes: Sequence[str],
    ) -> Plan:
        """Return the plan that this try makes."""
        return Plan(
            self.model, self.precision, task.hardware.vendor, task.preset.name, replicas, self.settings, self.reasons,
            env, self.budget, self.context, task.goal.extra, tuple(warnings), tuple(notes),
        )  # fmt: skip


def check_screenshots(count: int, tokens: int, context: int, remedy: str) -> None:
    """Raise CannotPlanError if a context does not hold some screenshots and the least of text."""
    if count * tokens + LEAST_TEXT_TOKENS > context:
        raise CannotPlanError(
            f"{count} screenshots of {tokens:,} tokens do not fit into a context of {context:,}.", remedy
        )


def too_long(model: Model, wished: int) -> CannotPlanError:
    """Return the refusal of a context that is longer than the model was made for."""
    most = model.shape.text.max_positions
    return CannotPlanError(
        f"{model.name} was made for {most:,} tokens, and {wished:,} are asked for.",
        f"Ask for a context of at most {most:,} tokens.",
    )
