"""Handles the user's own vLLM flags: some become settings of the plan, the others are checked and passed on."""

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from foundation.errors import UsageError
from serverctl.plan.goal import Goal
from serverctl.plan.settings import KNOBS, check_value, flag_text
from serverctl.vllm.capabilities import Capabilities, flag_now, value_now

#: Rejected flags: the controller sets them itself, or they would weaken the server's protection.
_REFUSED = {
    "--host": "the server listens on loopback only; a tunnel or reverse proxy is the way to share it",
    "--port": "use --port of `mai-server up`",
    "--api-key": "a key is made at every start",
    "--served-model-name": "use --name-as of `mai-server up`",
    "--model": "use --model of mai-server",
    "--uds": "the controller talks to a port",
    "--ssl-keyfile": "loopback needs no TLS; for other machines, put a reverse proxy in front",
    "--ssl-certfile": "loopback needs no TLS; for other machines, put a reverse proxy in front",
    "--grpc": "its requests would pass without the key",
    "--headless": "use `mai-server export multi-node`",
}
#: vLLM's short names and aliases of flags that are settings of a plan.
_SHORT = {"-tp": "--tensor-parallel-size", "-pp": "--pipeline-parallel-size", "-dp": "--data-parallel-size"}
_SHORT |= {"-q": "--quantization", "--device-memory-utilization": "--gpu-memory-utilization"}
_BY_FLAG = {knob.flag: name for name, knob in KNOBS.items() if name not in ("images", "longest_edge")}
#: Settings that are entries of a flag's JSON value: by flag, the keys down to each entry.
_IN_JSON: Mapping[str, Mapping[tuple[str, ...], str]] = {
    "--limit-mm-per-prompt": {("image",): "images"},
    "--mm-processor-kwargs": {("max_pixels",): "longest_edge", ("size", "longest_edge"): "longest_edge"},
}
_BY_FLAG |= {".".join((flag, *path)): name for flag, paths in _IN_JSON.items() for path, name in paths.items()}


def absorbed(goal: Goal) -> Goal:
    """Return the goal with user flags turned into settings where possible.

    Otherwise the plan would use other numbers than the server. Raises UsageError for a value that the setting rejects.
    """
    kept: list[str] = []
    values: dict[str, Any] = {}
    # Dashes for underscores in the names of flags, as vLLM's parser reads them.
    words = [re.sub(r"^--[^.=]*", lambda found: found[0].replace("_", "-"), word) for word in goal.extra]
    position = 0
    while position < len(words):
        taken, found, left = _setting(words[position:])
        values.update(found)
        kept += left
        position += taken
    own = {**goal.overrides, **values}
    if own.get("quantization") == "none":  # no flag at all: vLLM takes the weights as they are
        own["quantization"] = None
    return replace(goal, extra=tuple(kept), overrides=own)


def _setting(words: Sequence[str]) -> tuple[int, Mapping[str, Any], Sequence[str]]:
    """Return the number of leading words that belong together, the settings in them, and the remaining words."""
    flag, sign, value = words[0].partition("=")
    flag = _SHORT.get(flag, flag)
    negated = "--" + flag.removeprefix("--no-") if flag.startswith("--no-") else ""
    name = _BY_FLAG.get(flag) or _BY_FLAG.get(negated)
    if name is not None and KNOBS[name].kind == "switch":
        return (1, {}, words[:1]) if sign else (1, {name: not negated}, ())
    if not sign:
        value = words[1] if len(words) > 1 else ""
    count = 1 if sign else 2
    if not value or (value.startswith("-") and not _is_number(value)):  # no value, or the next flag
        return 1, {}, words[:1]
    found, left = _from_json(flag, value) if name is None else (_checked(name, value), {})
    if not found:
        return 1, {}, words[:1]
    return count, found, (flag, flag_text(left)) if left else ()


def _checked(name: str, value: Any) -> Mapping[str, Any]:
    """Return the checked setting; empty for a value that stays a vLLM flag: "none" (the default), or an object."""
    default = value is None or (name != "quantization" and str(value).casefold() == "none")
    return {} if default or isinstance(value, dict) else {name: check_value(name, value, "your own flag")}


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, or None."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _from_json(flag: str, value: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Split a flag's JSON value into settings and the remaining entries, which `render` merges with the plan's own."""
    found: dict[str, Any] = {}
    document = json_object(value) if flag in _IN_JSON else None
    if document is None:
        return {}, {}
    for path, name in _IN_JSON[flag].items():
        holder = document if len(path) == 1 else document.get(path[0])
        if not isinstance(holder, dict) or path[-1] not in holder:
            continue
        if not (checked := _checked(name, holder[path[-1]])):
            return {}, {}
        found |= checked
        del holder[path[-1]]
    return found, {
        key: entry for key, entry in document.items() if entry not in ({}, None) and (key, entry) != ("video", 0)
    }


def check_extra(extra: Sequence[str], capabilities: Capabilities) -> tuple[str, ...]:
    """Return the user's flags. Raises UsageError for the first one that is invalid for this vLLM."""
    takes, flag, lacks = 0, "", False  # values that the last flag still accepts; whether it still needs one
    for word in extra:
        if not word.startswith("-") or _is_number(word):
            if takes < 1:
                raise UsageError(f"{word!r} belongs to no flag.", "After -- come vLLM's flags, each with its value.")
            takes, lacks = takes - 1, False
            check_choice(flag, word, extra, capabilities)
            continue
        _refuse_bare(flag, lacks)
        flag, sign, value = word.partition("=")
        # Dotted forms set one entry of a JSON value (--limit-mm-per-prompt.image 4); vLLM also has -O3 and -cc.mode.
        stem = flag.split(".")[0]
        option = capabilities.options.get(flag) or capabilities.options.get(stem)
        canonical = option.flag if option else stem
        if canonical in _REFUSED:
            because = _REFUSED[canonical]
            raise UsageError(f"{flag} cannot be passed on.", f"{because[0].upper()}{because[1:]}.")
        if option is None and not capabilities.has(flag) and stem not in ("-O", "-O0", "-O1", "-O2", "-O3"):
            near = difflib.get_close_matches(stem, list(capabilities.options), 2, 0.6)
            hint = f"Did you mean {' or '.join(near)}?" if near else "`vllm serve --help=all` lists its flags."
            raise UsageError(f"vLLM {capabilities.version} has no flag {flag}.", flag_now(stem) or hint)
        if sign and option is not None and not option.takes_value:
            raise UsageError(f"{flag} takes no value, and {value!r} is given.", f"Write {flag} alone, or leave it out.")
        if sign:
            check_choice(flag, value, extra, capabilities)
        lacks = not sign and option is not None and option.needs_value and flag == stem
        takes = 0 if sign or option is None or not option.takes_value else option.most_values
        takes = 1 if stem == "-O" or (flag != stem and not sign) else takes
    _refuse_bare(flag, lacks)
    return tuple(extra)


def _refuse_bare(flag: str, lacks: bool) -> None:
    if lacks:
        raise UsageError(f"{flag} has no value.", "After -- come vLLM's flags, each with its value.")


def check_choice(flag: str, value: str, extra: Sequence[str], capabilities: Capabilities) -> None:
    """Raise UsageError if a flag does not accept a value. A plugin in `extra` may accept more values."""
    option = capabilities.options.get(flag)
    if option is None or value.casefold() == "none":
        return
    if (now := value_now(option.flag.removeprefix("--").replace("-", "_"), value)) is not None:
        raise UsageError(f"{option.flag} of vLLM {capabilities.version} cannot be {value!r}.", now)
    if (wanted := _KINDS.get(option.kind)) and not wanted[0](value):
        raise UsageError(f"{option.flag} of vLLM {capabilities.version} cannot be {value!r}.", f"It takes {wanted[1]}.")
    known = {choice.casefold() for choice in option.choices} if option.open else option.choices
    if not known or (value.casefold() if option.open else value) in known:
        return
    # A custom class is given with its module: package.module.Class.
    if (option.open and "." in value) or any(word.partition("=")[0].endswith("-plugin") for word in extra):
        return
    near = difflib.get_close_matches(value, list(option.choices), 3, 0.5)
    raise UsageError(
        f"{option.flag} of vLLM {capabilities.version} cannot be {value!r}.",
        f"Did you mean {' or '.join(near)}?" if near else f"It takes: {', '.join(sorted(option.choices))}.",
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


#: Check and description of each kind of value. Like vLLM, integers accept suffixes such as 32k.
_KINDS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "int": (re.compile(r"-?\d+|\d+(?:\.\d+)?[kKmMgGtT]|auto").fullmatch, "a whole number"),
    "float": (re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?").fullmatch, "a number"),
    "json": (_is_json, "JSON"),
}


def _is_number(word: str) -> bool:
    return word[1:].replace(".", "", 1).isdigit()
