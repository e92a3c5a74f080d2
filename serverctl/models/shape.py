"""Reads a model's dimensions from its config.json, and computes the number of parameters.

The counts follow the layer definitions in transformers (modeling_qwen3_5.py, modeling_qwen3_vl.py,
modeling_qwen2_5_vl.py, modeling_qwen2_vl.py, modeling_glm4v.py). They equal the counts on the meta device
(tests/serverctl/models).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from foundation.errors import UsageError

#: Limit for sizes in a config.json: a larger one is an error, and would overflow later.
_LARGEST = 10**9

VisionKind: TypeAlias = Literal["qwen3_5", "qwen3_vl", "qwen2_5_vl", "qwen2_vl", "glm4v"]


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """The layers of a hybrid model that keep one state per request instead of keys and values (Gated DeltaNet)."""

    layers: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int  # of the preceding convolution, in tokens

    @property
    def _mixed(self) -> int:
        """Total width of queries, keys and values: the channels of the convolution."""
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    def parameters(self, hidden: int) -> int:
        """Return the parameters of one layer's attention, without the norms of the block."""
        values = self.value_heads * self.value_dim
        projections = hidden * (self._mixed + values + 2 * self.value_heads) + values * hidden
        return projections + self._mixed * self.kernel + 2 * self.value_heads + self.value_dim

    def state_bytes(self, tensor_parallel: int = 1) -> int:
        """Return the bytes of one layer's state of one request on one card.

        The convolution state has 16 bits, the recurrent state 32 (mamba_ssm_dtype in Qwen3.5's config). The shapes are
        those of vLLM 0.33's `MambaStateShapeCalculator.gated_delta_net_state_shape`.
        """
        convolution = self._mixed // tensor_parallel * (self.kernel - 1) * 2
        return convolution + self.value_heads // tensor_parallel * self.value_dim * self.key_dim * 4


@dataclass(frozen=True, slots=True)
class TextShape:
    """The language model. Sizes are in elements; `experts` is 0 for dense models."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    attention_bias: bool
    qk_norm: bool
    max_positions: int
    experts: int = 0
    experts_used: int = 0
    expert_intermediate: int = 0
    shared_intermediate: int = 0  # width of the shared expert; 0 without one
    gated: bool = False  # the query projection also produces a gate of the same width for the attention output
    block_norms: int = 2  # norms of one layer
    linear: LinearAttention | None = None  # None if every layer keeps keys and values

    @property
    def attention_layers(self) -> int:
        """Number of layers that keep keys and values."""
        return self.layers - (self.linear.layers if self.linear else 0)

    @property
    def embedding_parameters(self) -> int:
        """Parameters of token embeddings and output head, which quantisation leaves in 16 bits."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def expert_parameters(self) -> int:
        """Parameters of all experts; 0 for dense models."""
        return self.layers * self.experts * 3 * self.hidden * self.expert_intermediate

    @property
    def block_parameters(self) -> int:
        """Parameters of all layers and the last norm, which quantisation shrinks."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = (3 if self.gated else 2) * self.hidden * queries + 2 * self.hidden * keys
        attention += (queries + 2 * keys) if self.attention_bias else 0
        attention += 2 * self.head_dim if self.qk_norm else 0
        if self.experts:
            feed_forward = self.experts * 3 * self.hidden * self.expert_intermediate + self.hidden * self.experts
            if self.shared_intermediate:  # includes its gate
                feed_forward += 3 * self.hidden * self.shared_intermediate + self.hidden
        else:
            feed_forward = 3 * self.hidden * self.intermediate
        linear = self.linear.layers * self.linear.parameters(self.hidden) if self.linear else 0
        others = self.layers * (feed_forward + self.block_norms * self.hidden)
        return self.attention_layers * attention + linear + others + self.hidden

    def kv_bytes_per_token(self, tensor_parallel: int = 1, element_bytes: int = 2) -> int:
        """Return the KV cache bytes of one token on one card: 2 x attention layers x KV heads / TP x head size x bytes.

        If there are fewer KV heads than cards, they are replicated, not split.
        """
        return 2 * self.attention_layers * max(1, self.kv_heads // tensor_parallel) * self.head_dim * element_bytes


@dataclass(frozen=True, slots=True)
class VisionShape:
    """The vision tower."""

    kind: VisionKind
    depth: int
    hidden: int
    heads: int
    intermediate: int
    patch: int
    temporal_patch: int
    merge: int
    channels: int
    out_hidden: int
    positions: int
    deepstack: int

    @property
    def factor(self) -> int:
        """Side length in pixels of one image token: patch size x merge size."""
        return self.patch * self.merge

    @property
    def parameters(self) -> int:
        """Number of parameters of the tower and its mergers."""
        width, inner = self.hidden, self.intermediate
        merged = width * self.merge**2
        patches = self.channels * self.temporal_patch * self.patch**2 * width
        if self.kind == "glm4v":
            return self._glm_parameters(patches)
        attention = 4 * width**2 + 4 * width
        plain = 2 * width * inner + inner + width  # feed-forward, with biases
        merger = merged**2 + merged + merged * self.out_hidden + self.out_hidden
        if self.kind == "qwen2_5_vl":  # gated feed-forward; norms have no biases
            gated = 3 * width * inner + 2 * inner + width
            return patches + self.depth * (attention + gated + 2 * width) + merger + width
        total = patches + self.depth * (attention + plain + 4 * width) + merger + 2 * width
        if self.kind in ("qwen3_5", "qwen3_vl"):
            total += width + self.positions * width + self.deepstack * (merger + 2 * merged)
        return total

    def _glm_parameters(self, patches: int) -> int:
        """Return the parameters of GLM's tower.

        Its feed-forward layers are gated, without biases, and as wide as the language model; its merger is gated.
        """
        width, out = self.hidden, self.out_hidden
        block = 4 * width**2 + 3 * width * out + 2 * width
        downsample = self.merge**2 * width * out + out
        merger = out**2 + 2 * out + 3 * out * self.intermediate
        return patches + width + self.positions * width + self.depth * block + 2 * width + downsample + merger


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's dimensions, and the format of its published weights."""

    text: TextShape
    vision: VisionShape | None
    dtype: str
    quantization: str | None
    quantization_bits: int | None

    @property
    def parameters(self) -> int:
        """Number of all parameters."""
        vision = self.vision.parameters if self.vision else 0
        return self.text.embedding_parameters + self.text.block_parameters + vision


def read_shape(config: Mapping[str, Any], origin: str) -> Shape:
    """Read the dimensions from a config.json. Raises UsageError that names `origin` and the bad entry."""
    text: Mapping[str, Any] = config.get("text_config") or config.get("llm_config") or config
    try:
        method, bits = _quantization(config)
        return Shape(
            text=_text_shape(config, text),
            vision=_vision_shape(config, text),
            dtype=str(config.get("dtype") or config.get("torch_dtype") or text.get("dtype") or "bfloat16"),
            quantization=method,
            quantization_bits=bits,
        )
    except KeyError as error:
        raise UsageError(
            f"{origin} has no {error.args[0]!r}, so the model's size cannot be computed.",
            "Is it a language or vision-language model's config.json?",
        ) from error
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise UsageError(
            f"{origin} holds a value that is no size: {error}.", "Is it a model's own config.json?"
        ) from error


def _size(entries: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """Return a size of 1 or more, or its default. Raises KeyError or ValueError."""
    value = entries[name] if default is None else entries.get(name) or default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= _LARGEST or value % 1:
        raise ValueError(f"{name} is {str(value)[:40]!r}")  # transformers does not accept numbers as strings
    return int(value)


#: Entries of config.json with the number of experts: Qwen's, Mixtral's and gpt-oss's, DeepSeek's and GLM's.
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


def _text_shape(config: Mapping[str, Any], text: Mapping[str, Any]) -> TextShape:
    heads = _size(text, "num_attention_heads")
    hidden = _size(text, "hidden_size")
    many = next((name for name in _EXPERTS if text.get(name)), None)
    experts = _size(text, many) if many else 0
    used = _size(text, "num_experts_per_tok", 1) if experts else 0
    # Mixtral's experts are as wide as its intermediate_size.
    width = "moe_intermediate_size" if text.get("moe_intermediate_size") else "intermediate_size"
    expert = _size(text, width) if experts else 0
    shared = _size(text, "shared_expert_intermediate_size") if text.get("shared_expert_intermediate_size") else 0
    if not shared and text.get("n_shared_experts"):
        shared = _size(text, "n_shared_experts") * expert
    model_type = str(text.get("model_type") or config.get("model_type") or "")
    return TextShape(
        hidden=hidden,
        layers=_size(text, "num_hidden_layers"),
        heads=heads,
        kv_heads=_size(text, "num_key_value_heads", heads),
        head_dim=_size(text, "head_dim", hidden // heads),
        # Mixtures of experts without dense layers have no intermediate_size: use the width of the active experts.
        intermediate=_size(text, "intermediate_size", used * expert + shared if experts else None),
        vocabulary=_size(text, "vocab_size"),
        tied=bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))),
        # Qwen2 has biases on q, k and v regardless of its config; Qwen3 has norms on q and k instead.
        attention_bias=bool(text.get("attention_bias", False)) or model_type.startswith("qwen2"),
        qk_norm=model_type.startswith("qwen3"),
        max_positions=_size(text, "max_position_embeddings", 32_768),
        experts=experts,
        experts_used=used,
        expert_intermediate=expert,
        shared_intermediate=shared if experts else 0,
        gated=model_type.startswith("qwen3_5"),
        block_norms=4 if model_type.startswith("glm4v") else 2,
        linear=_linear_attention(text),
    )


def _linear_attention(text: Mapping[str, Any]) -> LinearAttention | None:
    """Read the linear-attention layers: those in `layer_types`, or all except every n-th. None if there are none."""
    if not text.get("linear_num_value_heads"):
        return None
    layers = _size(text, "num_hidden_layers")
    kinds = text.get("layer_types")
    interval = _size(text, "full_attention_interval", 4)
    count = sum(kind == "linear_attention" for kind in kinds) if kinds else layers - layers // interval
    if not 0 <= count < layers:
        raise ValueError(f"layer_types names {count} of {layers} layers as linear attention")
    if count == 0:
        return None
    return LinearAttention(
        layers=count,
        key_heads=_size(text, "linear_num_key_heads", 16),
        value_heads=_size(text, "linear_num_value_heads"),
        key_dim=_size(text, "linear_key_head_dim", 128),
        value_dim=_size(text, "linear_value_head_dim", 128),
        kernel=_size(text, "linear_conv_kernel_dim", 4),
    )


def _vision_shape(config: Mapping[str, Any], text: Mapping[str, Any]) -> VisionShape | None:
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return None
    depth, seen = _size(vision, "depth"), vision.get("deepstack_visual_indexes") or ()
    if any(not isinstance(place, int) or place >= depth for place in seen):
        raise ValueError(f"deepstack_visual_indexes is {str(seen)[:40]}, of {depth} layers")
    model_type = str(config.get("model_type") or "")
    kinds: tuple[VisionKind, ...] = get_args(VisionKind)
    kind: VisionKind = next((kind for kind in kinds if model_type.startswith(kind)), "qwen2_vl")
    # Qwen2-VL calls the tower's width embed_dim, and its output width hidden_size.
    width = _size(vision, "embed_dim" if kind == "qwen2_vl" and "embed_dim" in vision else "hidden_size")
    ratio, patch = vision.get("mlp_ratio"), _size(vision, "patch_size", int(vision.get("spatial_patch_size") or 14))
    positions = _size(vision, "num_position_embeddings") if vision.get("num_position_embeddings") else 0
    if kind == "glm4v":  # one for each patch of the training image size
        positions = (_size(vision, "image_size", 336) // patch) ** 2
    return VisionShape(
        kind=kind,
        depth=depth,
        hidden=width,
        heads=_size(vision, "num_heads", 16),
        intermediate=_size(vision, "intermediate_size", int(float(ratio) * width) if ratio else 4 * width),
        patch=patch,
        temporal_patch=_size(vision, "temporal_patch_size", 2),
        merge=_size(vision, "spatial_merge_size", 2),
        channels=_size(vision, "in_channels", int(vision.get("in_chans") or 3)),
        out_hidden=_size(vision, "out_hidden_size", _size(text, "hidden_size")),
        positions=positions,
        deepstack=len(seen),
    )


#: Bits of a weight by quantisation method, for configs without an entry for the bits.
_METHOD_BITS = {"fp8": 8, "fbgemm_fp8": 8, "modelopt": 8, "awq": 4, "gptq": 4, "mxfp4": 4, "modelopt_fp4": 4}


def _quantization(config: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """Return the quantisation method and the bits of a weight from the config; None for unknown values."""
    found = config.get("quantization_config") or config.get("compression_config")
    if not isinstance(found, Mapping) or not found:
        return None, None
    method = str(found.get("quant_method") or "unknown")
    bits = found.get("bits") or found.get("w_bit") or found.get("num_bits")
    if bits is None:
        groups = found.get("config_groups")
        parts = [dict(group).get("weights") for group in groups.values()] if isinstance(groups, Mapping) else []
        weights = [part["num_bits"] for part in parts if isinstance(part, Mapping) and "num_bits" in part]
        algorithm = str(found.get("quant_algo") or "").upper()
        four = "FP4" in algorithm or "W4" in algorithm or found.get("load_in_4bit")
        bits = weights[0] if weights else 4 if four else 8 if found.get("load_in_8bit") else _METHOD_BITS.get(method)
    return method, int(bits) if bits else None
