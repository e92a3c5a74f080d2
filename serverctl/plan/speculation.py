"""Speculative decoding: what each way of guessing tokens ahead needs, and how to find out whether it helps.

Facts of vLLM 0.33 (config/speculative.py, v1/spec_decode/llm_base_proposer.py): `mtp` takes the head that is in the
weights; `draft_model` takes no draft with M-RoPE, so no small vision model, and guesses from text alone; `suffix` needs
the package arctic-inference. None changes what a greedy model answers. Which is quicker is for a bench to say.
"""

from foundation.errors import UsageError
from serverctl.models.model import Model
from serverctl.plan.settings import Settings

#: Ways that take a second model, which must be named.
_WITH_MODEL = ("draft_model", "eagle", "eagle3")


def check_speculation(settings: Settings) -> None:
    """Raises UsageError for what cannot work."""
    if settings.spec_method in _WITH_MODEL and settings.spec_model is None:
        raise UsageError(
            f"spec_method={settings.spec_method} needs the model that guesses.",
            "Name it, a small one with the same vocabulary: --set spec_model=ORG/NAME.",
        )


def speculation_warnings(model: Model, settings: Settings) -> list[str]:
    """What a person should know of the way that was chosen."""
    if settings.spec_method == "suffix":
        return ["Suffix decoding needs the package arctic-inference beside vLLM; without it vLLM does not start."]
    if settings.spec_method == "mtp" and not model.mtp_layers:
        return [f"{model.name} is not known to come with a head for multi-token prediction."]
    if settings.spec_method in _WITH_MODEL:
        draft = settings.spec_model
        return [f"vLLM takes no {draft} as a draft if it sees pictures itself; its memory is not in this plan."]
    return []


def speculation_notes(settings: Settings) -> list[str]:
    """How to find out whether it helps."""
    if settings.spec_method is None:
        return []
    return [
        "Guessing ahead helps some work and slows other: `mai-server bench --replay RUN --compare latency speculative "
        "speculative+spec_method=suffix` measures it on your own runs."
    ]
