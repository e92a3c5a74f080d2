"""Collects the settings of one candidate plan, and makes the decisions that all kinds of hardware share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foundation.errors import UsageError
from foundation.printing import counted
from serverctl.hardware.facts import CannotPlanError, Gpu
from serverctl.models.model import LONG_ANSWER, SHORT_ANSWER, Model, Precision
from serverctl.plan.goal import Plan, PlanInputs, Reason
from serverctl.plan.group import Group
from serverctl.plan.memory import Budget
from serverctl.plan.settings import Settings, names_flag

#: Contexts to choose from, in tokens. The smallest holds one 1080p screenshot, a prompt and an answer.
CONTEXT_STEPS = (6144, 8192, 12_288, 16_384, 24_576, 32_768, 65_536, 131_072)
#: Text tokens of a request: 1.5k of prompt and history, 2k of answer, some room.
TEXT_TOKENS = 4096
#: Screenshots in a request, as a multiple of those that a model's own client keeps. The agent drops old ones in blocks:
#: between drops the prefix cache serves all but the newest (docs/serving.md, "Measuring").
SCREENSHOTS_IN_BLOCKS = 4
#: The fewest text tokens beside the screenshots if the user set the context.
LEAST_TEXT_TOKENS = 1024
#: Tokens of the answer that TEXT_TOKENS has room for.
ANSWER_TOKENS = SHORT_ANSWER[1]
#: vLLM's default max_num_seqs on a card below 70 GiB; larger cards have more (0.33's arg_utils.py).
_LEAST_SLOTS_OF_VLLM = 256
#: With a shorter context than this, smaller weights are preferred over 16 bits. The value is not higher even where 8
#: bits are faster: their cost in grounding accuracy is not measured.
_GOOD_CONTEXT = 16_384
#: Tensor parallelism outweighs its communication cost only over NVLink, and from this number of parameters up.
LATENCY_TP_PARAMETERS = 6e9
#: Methods of speculative decoding that need a draft model.
WITH_DRAFT_MODEL = ("draft_model", "eagle", "eagle3")


def answer_rooms(model: Model, inputs: PlanInputs) -> tuple[tuple[int, ...], ...]:
    """Return the tokens to leave for an answer: groups in order of preference, each with the largest room first.

    A model that thinks cannot answer where its thoughts are cut off, so screenshots are given up before the second
    group is tried. The preset for reasoning never shortens thoughts.
    """
    preset = inputs.preset
    usual, most = model.answer_tokens
    if model.family is None and (preset.answer_tokens or inputs.goal.overrides.get("reasoning_parser")):
        usual, most = LONG_ANSWER  # an unknown model that thinks, according to the user or the preset
    if most <= ANSWER_TOKENS:
        return ((ANSWER_TOKENS,),)
    if preset.answer_tokens:
        return ((max(most, preset.answer_tokens),),)
    enough = tuple(room for room in dict.fromkeys((most, usual)) if room > ANSWER_TOKENS)
    return (enough, (ANSWER_TOKENS,))


class Draft:
    """Collects settings with their reasons. User settings win, then adjustments, then the preset, then decisions."""

    def __init__(self, inputs: PlanInputs) -> None:
        self.preset = inputs.preset
        self.values: dict[str, Any] = {}
        self.reasons: dict[str, Reason] = {}
        goal, preset = inputs.goal, inputs.preset
        #: whether the user brings a reasoning parser of their own
        self.plugin = names_flag(goal.extra, "--reasoning-parser-plugin")
        for name, value in preset.settings.items():
            self.put(name, value, f"preset {preset.name}: {preset.about}", "configs/presets")
        for name, value in goal.adjustments.items():
            if name in Settings.__dataclass_fields__:
                self.put(name, value, goal.adjusted_because.get(name, "adjusted after an earlier start"), "repair")
        for name, value in goal.overrides.items():
            self.put(name, value, "your own setting", "you", automatic=False)
        self._cover_slots()

    def put(self, name: str, value: Any, text: str, source: str, automatic: bool = True) -> None:
        """Set a value, replacing any earlier one."""
        self.values[name] = value
        self.reasons[name] = Reason(text, source, automatic)

    def _cover_slots(self) -> None:
        """Raise a preset's limit of CUDA graphs to the slots: larger batches would decode without graphs."""
        name = "max_cudagraph_capture_size"
        slots, size = self.values.get("max_num_seqs"), self.values.get(name)
        if slots and size and slots > size and self.reasons[name].source == "configs/presets":
            step = 8 if slots <= 256 else 16  # vLLM captures multiples of it
            size = min(512, -(-slots // step) * step)
            held = f"all {slots}" if size >= slots else f"{size} of the {slots}"
            text = f"CUDA graphs for {held} slots: a larger batch than the largest graph decodes without one"
            self.put(name, size, text, "configs/presets")

    def has(self, name: str) -> bool:
        """Return whether a setting already has a value, or the preset leaves it to vLLM."""
        return name in self.values or name in self.preset.leave

    def decide(self, name: str, value: Any, text: str, source: str) -> None:
        """Set a value unless `has` the setting."""
        if value is not None and not self.has(name):
            self.put(name, value, text, source)

    def drop(self, *names: str) -> None:
        """Remove a preset's values that do not suit this card. User settings stay."""
        for name in names:
            if name in self.reasons and self.reasons[name].source == "configs/presets":
                del self.values[name], self.reasons[name]

    def settings(self) -> Settings:
        """Return the settings decided so far."""
        return Settings(**self.values)

    def decide_model(self, model: Model, speculation: bool = True) -> None:
        """Decide the settings that depend on the model alone: the reasoning parser and speculative decoding.

        Raises UsageError if a draft model is needed and not named, or a parser for a model that does not think.
        """
        own = self.values.get("reasoning_parser")
        if own is not None and model.reasoning_parser is None and model.family is not None and not self.plugin:
            raise UsageError(
                f"{model.name} has no thoughts to tell from its answer: with the parser {own} the whole answer would "
                "be taken for a thought.",
                "Leave reasoning_parser out, or name a model that thinks (--model Qwen3-VL-8B-Thinking).",
            )
        if model.reasoning_parser is not None:
            self.drop("reasoning_parser")
            self.decide("reasoning_parser", model.reasoning_parser, f"{model.name} thinks first", "configs/models")
        if speculation:
            self._decide_speculation(model)

    def _decide_speculation(self, model: Model) -> None:
        """Decide speculative decoding. A model's own MTP head replaces the n-grams of a preset."""
        source = "vllm/config/speculative.py"
        if self.values.get("spec_method") != "ngram":
            self.drop("spec_tokens")  # the preset's number is meant for n-grams
        elif model.mtp_layers:
            self.drop("spec_method", "spec_tokens")
            text = f"{model.name} comes with a head that guesses the next tokens"
            self.decide("spec_method", "mtp", text, "configs/models")
            if self.values["spec_method"] == "mtp":
                # The same layer predicts every further token, and its accuracy drops each time.
                self.decide("spec_tokens", 2, "the head guesses two tokens", source)
        method = self.values.get("spec_method")
        if method in ("ngram", "ngram_gpu", "draft_model"):
            self.decide("spec_tokens", 4, "vLLM asks for a number here", source)
        if method in WITH_DRAFT_MODEL and self.values.get("spec_model") is None:
            raise UsageError(
                f"spec_method={method} needs the model that guesses.",
                "Name it, a small one with the same vocabulary: --set spec_model=ORG/NAME.",
            )

    def bound_slots(self, budget: Budget, smallest: int) -> bool:
        """Limit max_num_seqs to the requests of `smallest` tokens that the KV cache holds, if it is open.

        "Open" means that the preset leaves it to vLLM and nothing set it. Return whether a limit was needed.
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
    """A candidate plan: a model on some cards, with the resulting context."""

    model: Model
    precision: Precision
    layout: Layout
    settings: Settings
    reasons: Mapping[str, Reason]  # by setting
    budget: Budget  # of one card
    context: int  # tokens that every request may have; 0 if nothing fits
    needed: int  # tokens of a request with the wanted screenshots and the answer
    cap: int = 0  # the longest useful context on this card

    @property
    def fits(self) -> bool:
        """True if a request with the wanted screenshots fits."""
        return self.context >= self.needed

    @property
    def roomy(self) -> bool:
        """True if the context is long enough to keep 16-bit weights."""
        return self.fits and self.context >= min(_GOOD_CONTEXT, self.cap)

    @property
    def whole(self) -> bool:
        """True if the context reaches the longest useful one on these cards."""
        return self.fits and self.context >= self.cap

    def predicted(self, inputs: PlanInputs) -> "Candidate":
        """Return the candidate with the goal's KV cache in place of the estimate, if the goal gives one."""
        if inputs.goal.kv_bytes is None:
            return self
        budget = replace(self.budget, kv=inputs.goal.kv_bytes)
        most = max(1, min(self.model.shape.text.max_positions, budget.kv_tokens))
        return replace(self, budget=budget, context=most if self.settings.max_model_len == "auto" else self.context)

    def plan(
        self,
        inputs: PlanInputs,
        replicas: tuple[tuple[Gpu, ...], ...],
        env: Mapping[str, tuple[str, Reason]],
        warnings: Sequence[str],
        notes: Sequence[str],
    ) -> Plan:
        """Turn the candidate into a plan."""
        return Plan(
            self.model, self.precision, inputs.hardware.vendor, inputs.preset.name, replicas, self.settings,
            self.reasons, env, self.budget, self.context, inputs.goal.extra, tuple(warnings), tuple(notes),
        )  # fmt: skip


def check_screenshots(count: int, tokens: int, context: int, remedy: str) -> None:
    """Raise CannotPlanError if a context does not hold the screenshots and LEAST_TEXT_TOKENS of text."""
    if count * tokens + LEAST_TEXT_TOKENS > context:
        raise CannotPlanError(
            f"{counted(count, 'screenshot')} of {tokens:,} tokens do not fit into a context of {context:,}.", remedy
        )


def too_long(model: Model, wished: int) -> CannotPlanError:
    """Return the error for a context that is longer than the model supports."""
    most = model.shape.text.max_positions
    return CannotPlanError(
        f"{model.name} was made for {most:,} tokens, and {wished:,} are asked for.",
        f"Ask for a context of at most {most:,} tokens.",
    )
