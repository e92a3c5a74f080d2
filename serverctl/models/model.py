"""A model as the plan sees it: dimensions, memory of the weights by precision, tokens of an image."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from foundation.images import smart_resize
from serverctl.models.shape import Shape

#: How weights are held: 16 bits, 8 bits (fp8, vision tower and embeddings left in 16), 4 bits (AWQ or GPTQ, likewise).
Precision: TypeAlias = Literal["16-bit", "fp8", "w4"]

#: Precisions as a person reads them.
SPOKEN: Mapping[Precision, str] = {"16-bit": "16-bit", "fp8": "8-bit", "w4": "4-bit"}
#: Bytes of one quantised weight. A 4-bit weight carries its share of the group's scale and zero point (AWQ and GPTQ,
#: groups of 128: about a quarter of a bit).
_BYTES = {"16-bit": 2.0, "fp8": 1.0, "w4": 0.53125}


@dataclass(frozen=True, slots=True)
class Quantized:
    """A published checkpoint of the same model with smaller weights."""

    repo: str
    bits: int


@dataclass(frozen=True, slots=True)
class Model:
    """One model."""

    name: str  # as people say it, and as the server calls it: MAI-UI-8B
    source: str  # what vLLM is given: a repository's name or a folder
    shape: Shape  # its dimensions
    min_pixels: int  # the smallest image its processor keeps
    max_pixels: int  # the largest image its processor keeps
    family: str | None = None  # the agent's family, None where not known
    history_images: int = 3  # screenshots in a request that its own client keeps
    origin: str = ""  # where the dimensions were read, for the plan
    #: size of the published weights, from the safetensors index; None where not known
    checkpoint_bytes: int | None = None
    mtp_layers: int = 0  # of the head that comes with it and guesses tokens ahead (multi-token prediction)
    reasoning_parser: str | None = None  # vLLM's parser for its thoughts, None where it has none
    quantized: tuple[Quantized, ...] = ()  # published checkpoints with smaller weights
    local: Path | None = None  # the folder that holds it on this machine, None where it must be downloaded first

    @property
    def factor(self) -> int:
        """Pixels on a side of one image token."""
        return self.shape.vision.factor if self.shape.vision else 32

    @property
    def own_precision(self) -> Precision:
        """The precision of its published weights.

        A method whose bits are not said is told by the size of the weights; where that is not known either, the
        weights are taken for 8 bits: more than the truth at worst, and never quantised a second time.
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
        """What the weights take in memory at some precision, in bytes.

        Quantisation leaves the vision tower and the embeddings in 16 bits. Weights in 32 bits are loaded as 16.
        """
        if precision == self.own_precision and self.shape.quantization is not None and self.checkpoint_bytes:
            return self.checkpoint_bytes
        return self._bytes_at(_BYTES[precision])

    def _bytes_at(self, bytes_of_weight: float) -> int:
        """The weights in bytes when the layers' own take this many each."""
        kept = (self.vision_bytes // 2 + self.shape.text.embedding_parameters) * 2
        return kept + round(self.shape.text.block_parameters * bytes_of_weight)

    @property
    def head_bytes(self) -> int:
        """Weights of the head that guesses tokens ahead, in 16 bits: whole layers, and what joins their two inputs."""
        text = self.shape.text
        return 2 * (replace(text, layers=1, linear=None).block_parameters + 2 * text.hidden**2) * self.mtp_layers

    def head_token_bytes(self, tensor_parallel: int = 1, element_bytes: int = 2) -> int:
        """KV cache of one token in that head's layers, on one card."""
        layer = replace(self.shape.text, layers=1, linear=None)
        return layer.kv_bytes_per_token(tensor_parallel, element_bytes) * self.mtp_layers

    @property
    def vision_bytes(self) -> int:
        """What the vision tower takes in memory, in bytes."""
        return self.shape.vision.parameters * 2 if self.shape.vision else 0

    def image_tokens(self, width: int, height: int, longest_edge: int | None = None) -> int:
        """Return the tokens of an image in pixels under a pixel budget (vLLM's size.longest_edge)."""
        budget = min(longest_edge or self.max_pixels, self.max_pixels)
        fitted_width, fitted_height = smart_resize(width, height, self.factor, self.min_pixels, budget)
        return (fitted_width // self.factor) * (fitted_height // self.factor)

    def as_checkpoint(self, checkpoint: Quantized) -> "Model":
        """This model by another of its published checkpoints."""
        method = "awq" if checkpoint.bits == 4 else "fp8"
        shape = replace(self.shape, quantization=method, quantization_bits=checkpoint.bits)
        return replace(self, source=checkpoint.repo, shape=shape, checkpoint_bytes=None, quantized=(), local=None)
