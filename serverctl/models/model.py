"""A model's properties for planning: dimensions, memory of its weights by precision, tokens of an image."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from foundation.images import smart_resize
from serverctl.models.shape import Shape

#: Precision of the weights: 16 bits, 8 bits (fp8) or 4 bits (AWQ or GPTQ). Quantisation leaves the vision tower and
#: embeddings in 16 bits.
Precision: TypeAlias = Literal["16-bit", "fp8", "w4"]

#: Display names of precisions.
SPOKEN: Mapping[Precision, str] = {"16-bit": "16-bit", "fp8": "8-bit", "w4": "4-bit"}
#: Bytes of one weight. A 4-bit weight includes its share of the group's scale and zero point (AWQ and GPTQ, groups of
#: 128: about a quarter of a bit).
_BYTES = {"16-bit": 2.0, "fp8": 1.0, "w4": 0.53125}


#: Tokens of an answer that does not think: what is usual, and the limit that GUI models' clients set.
SHORT_ANSWER = (128, 2048)
#: Tokens of an answer with thoughts, for models that think and have no entry of their own: Qwen3-VL-Thinking's.
LONG_ANSWER = (10_000, 32_768)


@dataclass(frozen=True, slots=True)
class Quantized:
    """A published checkpoint of the same model with smaller weights."""

    repo: str
    bits: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model that vLLM can serve."""

    name: str  # short name, also for the server's clients: MAI-UI-8B
    source: str  # the repository or folder that vLLM loads
    shape: Shape  # its dimensions
    min_pixels: int  # the image processor enlarges smaller images
    max_pixels: int  # the image processor shrinks larger images
    family: str | None = None  # the model family that the agent uses; None if unknown
    history_images: int = 3  # screenshots that the model's own client keeps in a request
    origin: str = ""  # source of the dimensions, for display
    #: size of the published weights, from the safetensors index; None if unknown
    checkpoint_bytes: int | None = None
    mtp_layers: int = 0  # layers of the model's head for multi-token prediction (MTP)
    reasoning_parser: str | None = None  # vLLM's reasoning parser; None if the model needs none
    answer_tokens: tuple[int, int] = SHORT_ANSWER  # tokens of an answer with its thoughts: usual, and at most
    quantized: tuple[Quantized, ...] = ()  # published checkpoints with smaller weights
    local: Path | None = None  # its folder on this machine; None if it must be downloaded
    only_experts: bool = False  # whether quantisation while loading leaves everything but the experts in 16 bits

    @property
    def thinks(self) -> bool:
        """Whether its answers need more room than those of a model that does not think."""
        return self.answer_tokens[1] > SHORT_ANSWER[1]

    @property
    def factor(self) -> int:
        """Side length in pixels of one image token."""
        return self.shape.vision.factor if self.shape.vision else 32

    @property
    def own_precision(self) -> Precision:
        """The precision of the published weights.

        If config.json does not give the bits, they follow from the size of the weights. Without a size, assume 8 bits:
        that overestimates memory at worst, and prevents quantising twice.
        """
        bits = self.shape.quantization_bits
        if self.shape.quantization is None:
            return "16-bit"
        if bits is None and self.checkpoint_bytes:
            bits = min((4, 8, 16), key=lambda each: abs(self._bytes_at(each / 8) - (self.checkpoint_bytes or 0)))
        if bits is not None and bits > 8:
            return "16-bit"
        return "w4" if bits is not None and bits <= 4 else "fp8"

    def weight_bytes(self, precision: Precision) -> int:
        """Return the bytes of the weights in memory at a precision.

        Quantisation leaves the vision tower and the embeddings in 16 bits. 32-bit weights are loaded as 16-bit.
        """
        if precision == self.own_precision and self.shape.quantization is not None and self.checkpoint_bytes:
            return self.checkpoint_bytes
        return self._bytes_at(_BYTES[precision])

    def _bytes_at(self, bytes_of_weight: float) -> int:
        """Return the bytes of all weights if each weight of a layer takes `bytes_of_weight`."""
        text = self.shape.text
        quantised = text.expert_parameters if self.only_experts else text.block_parameters
        return 2 * (self.shape.parameters - quantised) + round(quantised * bytes_of_weight)

    @property
    def head_bytes(self) -> int:
        """Bytes of the MTP head in 16 bits: its layers, and the projection that joins their two inputs."""
        text = self.shape.text
        return 2 * (replace(text, layers=1, linear=None).block_parameters + 2 * text.hidden**2) * self.mtp_layers

    def head_token_bytes(self, tensor_parallel: int = 1, element_bytes: int = 2) -> int:
        """Return the KV cache bytes of one token in the MTP head's layers, on one card."""
        layer = replace(self.shape.text, layers=1, linear=None)
        return layer.kv_bytes_per_token(tensor_parallel, element_bytes) * self.mtp_layers

    @property
    def vision_bytes(self) -> int:
        """Bytes of the vision tower in memory."""
        return self.shape.vision.parameters * 2 if self.shape.vision else 0

    def image_tokens(self, width: int, height: int, longest_edge: int | None = None) -> int:
        """Return the tokens of an image of `width` x `height` pixels within a budget (vLLM's size.longest_edge).

        A model without a vision tower has none.
        """
        if self.shape.vision is None:
            return 0
        budget = min(longest_edge or self.max_pixels, self.max_pixels)
        fitted_width, fitted_height = smart_resize(width, height, self.factor, self.min_pixels, budget)
        return (fitted_width // self.factor) * (fitted_height // self.factor)

    def as_checkpoint(self, checkpoint: Quantized) -> "Model":
        """Return this model with another of its published checkpoints."""
        method = "awq" if checkpoint.bits == 4 else "fp8"
        shape = replace(self.shape, quantization=method, quantization_bits=checkpoint.bits)
        return replace(self, source=checkpoint.repo, shape=shape, checkpoint_bytes=None, quantized=(), local=None)
