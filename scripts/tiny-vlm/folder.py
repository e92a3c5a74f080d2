"""A model's folder without its weights: chat template, processor and configuration, as the hub's models have them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kinds import Kind
from vocabulary import SPECIAL, add_texts, load_tokenizer, make_tokenizer

CHAT_TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for content in message.content %}
            {%- if content.type == 'image' or 'image' in content or 'image_url' in content %}
                {{- 'ANCHORS<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- elif content.type == 'video' or 'video' in content %}
                {{- '<|vision_start|><|video_pad|><|vision_end|>' }}
            {%- elif 'text' in content %}
                {{- content.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def write_json(path: Path, content: Any) -> None:
    """JSON as the hub's files have it."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_folder(folder: Path, kind: Kind, start: Path | None, more: Sequence[str] = ()) -> Any:
    """Writes everything but the weights; gives the tokenizer.

    It is that of the model that it starts from, with a token for each text of `more` that has none yet.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(kind) if start is None else load_tokenizer(start / "tokenizer.json")
    add_texts(tokenizer, more)
    tokenizer.save(str(folder / "tokenizer.json"))
    template = CHAT_TEMPLATE.replace("ANCHORS", "".join(kind.anchors))
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    processor = "Qwen3VLProcessor" if kind.relative else "Qwen2_5_VLProcessor"
    write_json(
        folder / "tokenizer_config.json",
        {
            "additional_special_tokens": [token for token in [*SPECIAL, *kind.anchors] if token != "<|endoftext|>"],
            "bos_token": None,
            "chat_template": template,
            "clean_up_tokenization_spaces": False,
            "eos_token": "<|im_end|>",
            "model_max_length": 262144,
            "pad_token": "<|endoftext|>",
            "processor_class": processor,
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": None,
        },
    )
    common = {
        "patch_size": kind.cell // 2, "temporal_patch_size": 2, "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "processor_class": processor,
    }  # fmt: skip
    # The limits of the published models.
    limits, seen = ((65536, 16777216), (4096, 25165824)) if kind.relative else ((3136, 12845056), (3136, 12845056))
    images = {"size": {"longest_edge": limits[1], "shortest_edge": limits[0]}, **common}
    if not kind.relative:
        images |= {"min_pixels": limits[0], "max_pixels": limits[1]}
    write_json(folder / "preprocessor_config.json", {**images, "image_processor_type": "Qwen2VLImageProcessorFast"})
    videos = {"size": {"longest_edge": seen[1], "shortest_edge": seen[0]}, **common}
    video_processor = "Qwen3VLVideoProcessor" if kind.relative else "Qwen2VLVideoProcessor"
    write_json(folder / "video_preprocessor_config.json", {**videos, "video_processor_type": video_processor})
    ids = {token: tokenizer.token_to_id(token) for token in SPECIAL}
    ends = [ids["<|im_end|>"], ids["<|endoftext|>"]]
    generation = {"do_sample": False, "eos_token_id": ends, "pad_token_id": ids["<|endoftext|>"]}
    write_json(folder / "generation_config.json", generation)
    write_json(folder / "config.json", configuration(kind, ids, tokenizer.get_vocab_size()))
    return tokenizer


def configuration(kind: Kind, ids: dict[str, int], vocabulary: int) -> dict[str, Any]:
    """config.json: the published layout with small numbers."""
    text: dict[str, Any] = {
        "attention_dropout": 0.0,
        "bos_token_id": ids["<|endoftext|>"],
        "dtype": "bfloat16",
        "eos_token_id": ids["<|im_end|>"],
        "hidden_act": "silu",
        "hidden_size": 256,
        "initializer_range": 0.02,
        "max_position_embeddings": 262144,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-06,
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": vocabulary,
    }
    common = {
        "dtype": "bfloat16",
        "image_token_id": ids["<|image_pad|>"],
        "tie_word_embeddings": True,
        "video_token_id": ids["<|video_pad|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
    }
    vision: dict[str, Any] = {
        "depth": 4 if kind.relative else 2,
        "hidden_size": 128,
        "in_channels": 3,
        "initializer_range": 0.02,
        "num_heads": 4,
        "out_hidden_size": 256,
        "patch_size": kind.cell // 2,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    if kind.relative:
        rope = {"mrope_interleaved": True, "mrope_section": [12, 10, 10], "rope_type": "default"}
        text |= {
            "attention_bias": False, "head_dim": 64, "intermediate_size": 640, "model_type": "qwen3_vl_text",
            "num_hidden_layers": 4, "rope_scaling": rope, "rope_theta": 5000000,
        }  # fmt: skip
        vision |= {
            "deepstack_visual_indexes": [1], "hidden_act": "gelu_pytorch_tanh", "intermediate_size": 512,
            "model_type": "qwen3_vl", "num_position_embeddings": 2304,
        }  # fmt: skip
        named = {"architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl"}
        return {**named, **common, "text_config": text, "vision_config": vision}
    # The published layout is flat here. Rows and columns of the image get other shares of the rotary frequencies than
    # in the published models, see `places.py`.
    text |= {
        "intermediate_size": 512, "num_hidden_layers": 4, "rope_theta": 10000.0,
        "rope_scaling": {"mrope_section": [1, 4, 27], "rope_type": "default", "type": "default"},
    }  # fmt: skip
    vision |= {
        "fullatt_block_indexes": [1], "hidden_act": "silu", "intermediate_size": 344, "in_chans": 3,
        "model_type": "qwen2_5_vl", "spatial_patch_size": kind.cell // 2, "tokens_per_second": 2, "window_size": 112,
    }  # fmt: skip
    named = {"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl"}
    return {**named, **common, **text, "vision_config": vision}
