"""The tokenizer: a byte-level BPE in Qwen's manner, with a token for every number and for some whole lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scenes import ASKS, COLOURS, SHAPES
from words import NUMBERS, Words, answer

SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
]  # fmt: skip
#: Single tokens, yet part of the text that comes out, as in Qwen's own vocabulary.
PLAIN = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CALLS = (
    '<thinking>\n</thinking>\n<tool_call>\n{"name": "mobile_use", "arguments": {"action": "click", "coordinate": '
    '[1, 2]}}\n</tool_call> {"name":"mobile_use","arguments":{"action":"click","coordinate":[1,2]}}'
)


def load_tokenizer(file: Path) -> Any:
    """The tokenizer of a model that is there."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(file))


def make_tokenizer(words: Words) -> Any:
    """Trains a tokenizer."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(SPLIT), behavior="isolated")
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytewise])
    tokenizer.decoder = decoders.ByteLevel()
    asks = [ask.format(c=c, s=s) for ask in ASKS for c in COLOURS for s in SHAPES]
    answers = [answer(c, s, 1, 2) for c in COLOURS for s in SHAPES]
    own = [words.system.replace("\n", " "), *words.lines]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=900, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([*own, *[CALLS] * 20, *asks, *answers], trainer)
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in SPECIAL])
    # 0 to 9 are bytes already.
    plain = [*PLAIN, *(str(n) for n in range(10, NUMBERS)), *words.lines]
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in plain])
    return tokenizer


def add_texts(tokenizer: Any, texts: Sequence[str]) -> None:
    """Gives each text a token of its own; plain words only where they stand alone."""
    from tokenizers import AddedToken

    known = tokenizer.get_vocab()
    new = [text for text in dict.fromkeys(texts) if text not in known]
    tokenizer.add_tokens(
        [AddedToken(text, single_word=text.isalpha(), normalized=False, special=False) for text in new]
    )


class Speller:
    """Texts to ids, with what the losses need to know about the vocabulary."""

    def __init__(self, tokenizer: Any, words: Words) -> None:
        self.words = words
        self.tokenizer = tokenizer
        self.image = self.id("<|image_pad|>")
        self.pad = self.id("<|endoftext|>")
        self.end = self.id("<|im_end|>")
        self.numbers = [self.id(str(n)) for n in range(NUMBERS)]
        self.value = {token: n for n, token in enumerate(self.numbers)}
        self._cache: dict[str, list[int]] = {}

    def id(self, token: str) -> int:
        """The id of one token."""
        return int(self.tokenizer.token_to_id(token))

    def ids(self, text: str) -> list[int]:
        """The ids of a text."""
        if text not in self._cache:
            if len(self._cache) > 50_000:
                self._cache.clear()
            self._cache[text] = list(self.tokenizer.encode(text, add_special_tokens=False).ids)
        return self._cache[text]

    def question(self, ask: str, cells: int, system: str | None = None) -> list[int]:
        """The request for an image of so many cells, with the user's text before it."""
        system = self.words.system if system is None else system
        opening = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{ask}\n"
        return [
            *self.ids(f"{opening}<|vision_start|>"), *[self.image] * cells,
            *self.ids("<|vision_end|><|im_end|>\n<|im_start|>assistant\n"),
        ]  # fmt: skip
