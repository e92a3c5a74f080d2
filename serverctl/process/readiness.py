"""Whether a server that says it is ready answers right: words whose tokens are known, a picture whose tokens count.

A server without its tokenizer, or with another model's image processor, answers all requests, and wrongly.
"""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from serverctl.models.defects import is_known, read_object
from serverctl.models.files import place_of
from serverctl.models.model import Model
from serverctl.models.safetensors import BrokenFileError
from serverctl.models.tokenizer import tokens_of
from serverctl.plan.goal import Plan
from serverctl.process import probe
from serverctl.process.probe import PROBE_SIDE, Answer

#: Plain words, in which every tokenizer of English finds at most a token a letter.
WORDS = "open the window and read the words on the screen"
#: What a chat template may put around a picture: Qwen's has a token before and one after it.
_MOST_FRAME = 8
#: How many of the likeliest tokens are asked for (vLLM's default allows 20), and the difference that counts as none.
_OTHERS, _SAME = 20, 1e-6
#: Flags of a person's own with which the model's files do not say what the server reads.
_OWN_WORDS, _OWN_PICTURES = ("--tokenizer", "--hf-overrides", "--tokenizer-mode"), ("--hf-overrides", "--chat-template")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the questions showed."""

    silent: str = ""  # how it did not answer; "" where it did
    wrong: str = ""  # what it answered wrong; "" where all was right
    seconds: float = 0.0  # how long the picture took
    refused: bool = False  # whether it did answer, with an error

    @property
    def ok(self) -> bool:
        """Whether it answered everything as it should."""
        return not self.silent and not self.wrong


def question(port: int, key: str, name: str, plan: Plan, seconds: float) -> Verdict:
    """Asks a server everything. Blocking; `seconds` is how long it may take for one token about a picture."""
    model = plan.model
    sees = model.shape.vision is not None
    if wrong := _words(port, key, name, model, plan.extra):  # first: without words every question is refused
        return Verdict(wrong=wrong)
    began = time.monotonic()
    answer = probe.ask_model(port, key, name, sees, seconds, _OTHERS)
    if answer.status == 400 and "logprobs" in answer.body:  # a person's own --max-logprobs
        answer = probe.ask_model(port, key, name, sees, seconds)
    took = time.monotonic() - began
    if not answer.ok:
        if "Out of range float" in answer.body:  # Python's words about NaN in JSON
            return Verdict(wrong="what it computes are no numbers: its weights are damaged")
        if answer.status == 400 and "chat template" in answer.body:
            return Verdict(wrong="it has no chat template: it refuses every conversation")
        if answer.status == 400 and "template" in answer.body:  # Jinja's own words, whatever they are
            return Verdict(wrong=f"its chat template is broken, so it refuses every conversation: {answer.body[:300]}")
        said = f"HTTP {answer.status}: {answer.body}" if answer.status else answer.body
        return Verdict(silent=said, refused=answer.status is not None)
    wrong = _choice(answer) or (_picture(port, key, name, plan, answer) if sees else "")
    return Verdict(wrong=wrong, seconds=took)


def _words(port: int, key: str, name: str, model: Model, flags: Sequence[str]) -> str:
    """Return what is wrong with its tokens of words; "" if they are right, or it cannot be asked."""
    asked = {"model": name, "prompt": WORDS, "add_special_tokens": False}
    answer = probe.ask(port, "/tokenize", key, asked, 20.0)
    tokens = _of(answer, "tokens")
    if not isinstance(tokens, list):
        return ""  # a server that has no such question
    place = None if _given(flags, _OWN_WORDS) else place_of(model)
    known = None if place is None else tokens_of(place, WORDS)
    if known is not None and tokens != known:
        return f"of {len(WORDS.split())} words it made {len(tokens)} tokens that are not those of the model's tokenizer"
    if not len(WORDS.split()) <= len(tokens) <= len(WORDS):
        return f"of {len(WORDS.split())} words it made {len(tokens)} tokens"
    back = _of(probe.ask(port, "/detokenize", key, {"model": name, "tokens": tokens}, 20.0), "prompt")
    if isinstance(back, str) and back.strip() != WORDS:
        return f"of the words “{WORDS}” it made tokens that say “{back.strip()[:80]}”"
    return ""


def _choice(answer: Answer) -> str:
    """Return what is wrong with its choice of the token; "" if it is right, or unknown."""
    with suppress(LookupError, TypeError):
        likely = [each["logprob"] for each in _of(answer, "choices")[0]["logprobs"]["content"][0]["top_logprobs"]]
        if len(likely) == _OTHERS and (None in likely or max(likely) - min(likely) < _SAME):
            return "it prefers no word to another: its weights are zeros, or damaged"
    return ""


def _picture(port: int, key: str, name: str, plan: Plan, answer: Answer) -> str:
    """Return what is wrong with its tokens of a picture, by the answer to the question before."""
    usage = _of(answer, "usage")
    seen = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    asked = {"model": name, "messages": [{"role": "user", "content": probe.text_of_question()}]}
    alone = _of(probe.ask(port, "/tokenize", key, asked, 20.0), "count")
    if not isinstance(seen, int) or not isinstance(alone, int):
        return ""
    more = seen - alone
    if more < 1:
        return "it left the picture out of the question"
    if _given(plan.extra, _OWN_PICTURES) or not _is_known(plan.model):
        return ""
    wanted = plan.model.image_tokens(PROBE_SIDE, PROBE_SIDE, plan.settings.longest_edge)
    if wanted <= more <= wanted + _MOST_FRAME:
        return ""
    return f"of a picture of {PROBE_SIDE} x {PROBE_SIDE} pixels it made {more} tokens where the model makes {wanted}"


def _is_known(model: Model) -> bool:
    """Whether the tokens of the model's pictures are known, by its own config.json."""
    place = place_of(model)
    with suppress(BrokenFileError, OSError):
        return place is not None and is_known(read_object(place, "config.json"))
    return False


def _of(answer: Answer, name: str) -> Any:
    """Return an entry of an answer's JSON object; None if it is missing."""
    with suppress(ValueError, AttributeError):
        return json.loads(answer.body).get(name) if answer.ok else None
    return None


def _given(flags: Sequence[str], names: Sequence[str]) -> bool:
    return any(word.split("=")[0] in names for word in flags)
