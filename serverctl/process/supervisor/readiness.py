"""Checks that a ready server answers correctly: words survive tokenizing, and an image has the right number of tokens.

With a missing tokenizer or another model's image processor, a server answers every request, but wrongly.
"""

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from serverctl.load.client import Answer, Endpoint
from serverctl.models.defects import BrokenFileError, is_known, read_object
from serverctl.models.files import place_of
from serverctl.plan.goal import Plan
from serverctl.plan.settings import names_flag
from serverctl.process import probe
from serverctl.process.probe import PROBE_SIDE

#: Plain English words: every tokenizer makes at least one token per word and at most one per character.
WORDS = "open the window and read the words on the screen"
#: Most tokens that a chat template adds around an image: Qwen's adds one before and one after it.
_MOST_FRAME = 8
#: Number of top tokens to request (vLLM's default maximum is 20), and the difference of logprobs that counts as none.
_OTHERS, _SAME = 20, 1e-6
#: User flags with which the model's files do not predict the tokens of an image.
_OWN_PICTURES = ("--hf-overrides", "--chat-template")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the readiness check."""

    silent: str = ""  # why there is no answer; "" if there is one
    wrong: str = ""  # what is wrong with the answers; "" if they are correct
    seconds: float = 0.0  # duration of the image request
    refused: bool = False  # whether the server answered with an HTTP error

    @property
    def ok(self) -> bool:
        """True if all answers are correct."""
        return not self.silent and not self.wrong


def question(server: Endpoint, plan: Plan, seconds: float) -> Verdict:
    """Run all checks on a server. Blocking. `seconds` is the timeout for one token about an image."""
    sees = plan.model.shape.vision is not None
    if wrong := _words(server):  # first: with a broken tokenizer every request fails
        return Verdict(wrong=wrong)
    began = time.monotonic()
    answer, system = probe.ask_model(server, sees, seconds, _OTHERS), False
    if answer.status == 400:  # perhaps the template wants a system message, as the families send
        again = probe.ask_model(server, sees, seconds, _OTHERS, system=True)
        answer, system = (again, True) if again.ok else (answer, False)
    if answer.status == 400 and "logprobs" in answer.body:  # the user set --max-logprobs
        answer = probe.ask_model(server, sees, seconds)
    took = time.monotonic() - began
    if not answer.ok:
        if "Out of range float" in answer.body:  # Python's error for NaN in JSON
            return Verdict(wrong="what it computes are no numbers: its weights are damaged")
        if answer.status == 400 and "chat template" in answer.body:
            return Verdict(wrong="it has no chat template: it refuses every conversation")
        if answer.status == 400 and "template" in answer.body:  # some error of Jinja
            return Verdict(wrong=f"its chat template is broken, so it refuses every conversation: {answer.body[:300]}")
        reason = f"HTTP {answer.status}: {answer.body}" if answer.status else answer.body
        return Verdict(silent=reason, refused=answer.status is not None)
    wrong = _choice(answer) or (_picture(server, plan, answer, system) if sees else "")
    return Verdict(wrong=wrong, seconds=took)


def _words(server: Endpoint) -> str:
    """Return what is wrong with the tokens of WORDS; "" if they are correct or cannot be checked."""
    payload = {"model": server.model, "prompt": WORDS, "add_special_tokens": False}
    tokens = _of(server.ask("/tokenize", payload, 20.0), "tokens")
    if not isinstance(tokens, list):
        return ""  # the server has no /tokenize
    if not len(WORDS.split()) <= len(tokens) <= len(WORDS):
        return f"of {len(WORDS.split())} words it made {len(tokens)} tokens"
    back = _of(server.ask("/detokenize", {"model": server.model, "tokens": tokens}, 20.0), "prompt")
    if isinstance(back, str) and back.strip() != WORDS:
        return f"of the words “{WORDS}” it made tokens that say “{back.strip()[:80]}”"
    return ""


def _choice(answer: Answer) -> str:
    """Return what is wrong with the token probabilities; "" if they are plausible or unknown."""
    with suppress(LookupError, TypeError):
        likely = [each["logprob"] for each in _of(answer, "choices")[0]["logprobs"]["content"][0]["top_logprobs"]]
        if len(likely) == _OTHERS and (None in likely or max(likely) - min(likely) < _SAME):
            return "it prefers no word to another: its weights are zeros, or damaged"
    return ""


def _picture(server: Endpoint, plan: Plan, answer: Answer, system: bool) -> str:
    """Return what is wrong with the number of image tokens in `answer`; "" if it is correct or cannot be checked."""
    usage = _of(answer, "usage")
    seen = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    payload = {"model": server.model, "messages": probe.question(False, system)}
    alone = _of(server.ask("/tokenize", payload, 20.0), "count")
    if not isinstance(seen, int) or not isinstance(alone, int):
        return ""
    more = seen - alone
    if more < 1:
        return "it left the picture out of the question"
    place = place_of(plan.model)
    try:
        predicted = place is not None and is_known(read_object(place, "config.json"))
    except (BrokenFileError, OSError):
        predicted = False
    if names_flag(plan.extra, *_OWN_PICTURES) or not predicted:
        return ""
    wanted = plan.model.image_tokens(PROBE_SIDE, PROBE_SIDE, plan.settings.longest_edge)
    if wanted <= more <= wanted + _MOST_FRAME:
        return ""
    return f"of a picture of {PROBE_SIDE} x {PROBE_SIDE} pixels it made {more} tokens where the model makes {wanted}"


def _of(answer: Answer, name: str) -> Any:
    """Return an entry of an answer's JSON object; None if it is missing or the answer is an error."""
    with suppress(ValueError, AttributeError):
        return json.loads(answer.body).get(name) if answer.ok else None
    return None
