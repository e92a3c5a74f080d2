from dataclasses import dataclass
from typing import Any


@dataclass
class StructuredOutputsParams:
    json: Any = None
    regex: str | None = None


@dataclass
class SamplingParams:
    max_tokens: int
    temperature: float
    structured_outputs: StructuredOutputsParams | None = None
