"""Grounding requests to Holo's models.

One user message: the image, then the question with the answer's format (hcompai/hai-cookbook, notebooks of Holo1,
Holo1.5 and Holo2; hub.hcompany.ai/element-localization for Holo3).
"""

import json
from collections.abc import Mapping
from typing import Any

from agent.model.request import ChatRequest, ImagePart, Message, Sampling, TextPart
from agent.screen.encode import EncodedImage


def localisation_request(
    text: str,
    instruction: str,
    image: EncodedImage | None,
    schema: Mapping[str, Any] | None,
    thinking: bool | None = None,
) -> ChatRequest:
    """Return the request for a point, with greedy decoding as the vendor recommends. `{schema}` in `text` is filled in.

    `thinking` is passed to the chat template unless it is None.
    """
    question = text.replace("{schema}", json.dumps(schema)) + "\n" + instruction
    return ChatRequest(
        [Message("user", (ImagePart(image), TextPart(question)))],
        Sampling(max_tokens=256),
        schema=schema,
        template_arguments={} if thinking is None else {"enable_thinking": thinking},
    )
