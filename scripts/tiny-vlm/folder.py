"""A model's folder without its weights: chat template, processor and configuration, as the hub's models have them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vocabulary import SPECIAL, add_texts, load_tokenizer, make_tokenizer
from words import CELL, Words

CHAT_TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for content in message.content %}
            {%- if content.type == 'image' or 'image' in content or 'image_url' in content %}
                {{- '<|vision_start|><|image_pad|><|vision_end|>' }}
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


def write_folder(folder: Path, words: Words, start: Path | None, more: Sequence[str] = ()) -> Any:
    """Writes everything but the weights; gives the tokenizer.

    It is that of the model that it starts from, with a token for each text of `more` that has none yet.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(words) if start is None else load_tokenizer(start / "tokenizer.json")
    add_texts(tokenizer, more)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    processor = "Qwen3VLProcessor"
    write_json(
        folder / "tokenizer_config.json",
        {
            "additional_special_tokens": [token for token in SPECIAL if token != "<|endoftext|>"],
            "bos_token": None,
            "chat_template": CHAT_TEMPLATE,
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
        "patch_size": CELL // 2, "temporal_patch_size": 2, "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "processor_class": processor,
    }  # fmt: skip
    # The limits of the published models.
    images = {"size": {"longest_edge": 16777216, "shortest_edge": 65536}, **common}
    write_json(folder / "preprocessor_config.json", {**images, "image_processor_type": "Qwen2VLImageProcessorFast"})
    videos = {"size": {"longest_edge": 25165824, "shortest_edge": 4096}, **common}
    write_json(folder / "video_preprocessor_config.json", {**videos, "video_processor_type": "Qwen3VLVideoProcessor"})
    ids = {token: tokenizer.token_to_id(token) for token in SPECIAL}
    ends = [ids["<|im_end|>"], ids["<|endoftext|>"]]
    generation = {"do_sample": False, "eos_token_id": ends, "pad_token_id": ids["<|endoftext|>"]}
    write_json(folder / "generation_config.json", generation)
    write_json(folder / "config.json", configuration(ids, tokenizer.get_vocab_size()))
    return tokenizer


def configuration(ids: dict[str, int], vocabulary: int) -> dict[str, Any]:
    """config.json: the published layout with small numbers."""
    text: dict[str, Any] = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": ids["<|endoftext|>"],
        "dtype": "bfloat16",
        "eos_token_id": ids["<|im_end|>"],
        "head_dim": 64,
        "hidden_act": "silu",
        "hidden_size": 256,
        "initializer_range": 0.02,
        "intermediate_size": 640,
        "max_position_embeddings": 262144,
        "model_type": "qwen3_vl_text",
        "num_attention_heads": 4,
        "num_hidden_layers": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-06,
        "rope_scaling": {"mrope_interleaved": True, "mrope_section": [12, 10, 10], "rope_type": "default"},
        "rope_theta": 5000000,
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": vocabulary,
    }
    vision: dict[str, Any] = {
        "deepstack_visual_indexes": [1],
        "depth": 4,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_size": 128,
        "in_channels": 3,
        "initializer_range": 0.02,
        "intermediate_size": 512,
        "model_type": "qwen3_vl",
        "num_heads": 4,
        "num_position_embeddings": 2304,
        "out_hidden_size": 256,
        "patch_size": CELL // 2,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "dtype": "bfloat16",
        "image_token_id": ids["<|image_pad|>"],
        "model_type": "qwen3_vl",
        "text_config": text,
        "tie_word_embeddings": True,
        "video_token_id": ids["<|video_pad|>"],
        "vision_config": vision,
        "vision_end_token_id": ids["<|vision_end|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
    }
