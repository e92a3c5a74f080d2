"""How Holo's models are asked where something is, and what they answer.

The picture, then the question with the format of the answer, both in one user message (hcompai/hai-cookbook, notebooks
of Holo1, Holo1.5 and Holo2; hub.hcompany.ai/element-localization for Holo3).
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
    """The question for one point: greedy, as its maker advises; `{schema}` in `text` stands for the schema.

    `thinking` is told to the chat template where it is said.
    """
    question = text.replace("{schema}", json.dumps(schema)) + "\n" + instruction
    return ChatRequest(
        [Message("user", (ImagePart(image), TextPart(question)))],
        Sampling(max_tokens=256),
        schema=schema,
        template_arguments={} if thinking is None else {"enable_thinking": thinking},
    )
