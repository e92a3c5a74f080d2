"""What the vision tower takes of a prefill, by the arithmetic of a model's layers: vLLM has no metric of it.

Counted are multiplications and additions: two for each parameter and token, and four for each pair of tokens, layer and
element that attention looks at (half of them where a token sees only those before it). The share of the time is the
share of the arithmetic where both halves run on the same processor equally well; it tells which of the two is the
larger part, not to the percent.
"""

from collections.abc import Mapping
from typing import Any

from serverctl.load.window import Window
from serverctl.models.model import Model
from serverctl.models.shape import TextShape, VisionShape

#: Of Qwen2.5-VL's 32 vision layers, those that look at the whole image (its config.json: fullatt_block_indexes).
_WHOLE_IMAGE_LAYERS = {"qwen2_5_vl": 4 / 32}
#: Tokens of a prompt that are text, where more than the images' own are not explained otherwise.
_TEXT_TOKENS = 2000
#: From this share of a request's service on, what comes before the engine is more than making tokens of text.
_MORE_THAN_TEXT = 0.05


def vision_operations(vision: VisionShape, tokens: float) -> float:
    """Of one image of so many tokens."""
    patches = tokens * vision.merge**2
    looking = vision.depth * _WHOLE_IMAGE_LAYERS.get(vision.kind, 1.0)
    return 2 * vision.parameters * patches + 4 * patches**2 * vision.hidden * looking


def prompt_operations(text: TextShape, tokens: float) -> float:
    """Of a prompt of so many tokens, none of which is cached."""
    parameters: float = text.block_parameters
    if text.experts:
        idle = (text.experts - text.experts_used) * 3 * text.hidden * text.expert_intermediate
        parameters -= text.layers * idle
    return 2 * parameters * tokens + 2 * tokens**2 * text.heads * text.head_dim * text.layers


def vision_share(
    model: Model, screen: tuple[int, int], longest_edge: int | None, images: float, prompt_tokens: float
) -> float:
    """0 to 1: the vision tower's part of the arithmetic of a prefill.

    Args:
        model: what is served.
        screen: width and height in pixels of the screen that was planned for.
        longest_edge: the pixel budget of one screenshot; None for the model's own.
        images: screenshots of a mean request.
        prompt_tokens: of a mean request, those of its images included.
    """
    vision = model.shape.vision
    if vision is None or images <= 0 or prompt_tokens <= 0:
        return 0.0
    most = (longest_edge or model.max_pixels) / model.factor**2
    planned = model.image_tokens(*screen, longest_edge)
    each = min(max(planned, (prompt_tokens - _TEXT_TOKENS) / images), prompt_tokens / images, most)
    seen = images * vision_operations(vision, each)
    return seen / (seen + prompt_operations(model.shape.text, prompt_tokens))


def unseen_images(window: Window, model: Model, screen: tuple[int, int], settings: Mapping[str, Any]) -> float:
    """Images of a mean request where nothing counts them: as many of the planned screen as its prompt has room for."""
    parts, prompt = window.parts, window.prompt_tokens
    if parts is None or prompt is None or parts.images < _MORE_THAN_TEXT * (parts.whole - parts.queue):
        return 0.0
    each = model.image_tokens(*screen, settings.get("longest_edge"))
    return float(max(1, min(prompt // each, settings.get("images") or 1)))
