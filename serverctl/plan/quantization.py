"""Checks a quantisation against the checkpoint and the hardware, before anything is planned with it.

vLLM itself refuses a wrong method only after it has loaded its libraries, or ignores it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from foundation.errors import UsageError
from serverctl.hardware.facts import CannotPlanError
from serverctl.models.model import SPOKEN, Model, Precision
from serverctl.plan.settings import names_flag

#: The flag without which vLLM refuses a deprecated method.
_ALLOW_DEPRECATED = "--allow-deprecated-quantization"
#: The first version of vLLM that rejects deprecated methods.
_REFUSES_DEPRECATED = (0, 33)


@dataclass(frozen=True, slots=True)
class Method:
    """One method of `configs/vllm/quantization.toml`, whose comments explain each field."""

    bits: int
    least_sm: int
    loads: bool = False
    reads: Sequence[str] = ()
    experts: bool = False
    family: int = 0
    since: str = ""
    loads_until: str = ""
    until: str = ""
    asked: bool = False
    deprecated: bool = False

    def quantises_while_loading(self, vllm: str) -> bool:
        """Return whether this method makes 16-bit weights smaller in a version of vLLM."""
        before, after = self.since or "0.0", self.loads_until or "10000.0"
        return self.loads and release(before) <= release(vllm) <= release(after)

    def in_version(self, vllm: str) -> bool:
        """Return whether a version of vLLM still has the method."""
        return not self.until or release(vllm) <= release(self.until)

    def runs_on(self, sm: int | None) -> bool:
        """Return whether an NVIDIA card has kernels for the method."""
        return sm is None or (sm >= self.least_sm and (not self.family or sm // 10 == self.family))

    @property
    def cards(self) -> str:
        """The cards that the method needs, in words."""
        if self.family:
            return f"cards of compute capability {self.family}.x"
        return f"compute capability {self.least_sm // 10}.{self.least_sm % 10}"


@dataclass(frozen=True, slots=True)
class QuantTable:
    """The contents of `configs/vllm/quantization.toml`."""

    methods: Mapping[str, Method]
    vendors: Mapping[str, Sequence[str]]  # methods by maker of the hardware; NVIDIA's are all
    gone: Mapping[str, str]  # names that vLLM no longer has, and what to do instead

    def reading(self, model: Model, vllm: str) -> Iterator[tuple[str, Method]]:
        """Yield the methods that serve a quantised checkpoint."""
        bits = {"fp8": 8, "w4": 4, "16-bit": 16}[model.own_precision]
        for name, method in self.methods.items():
            fits = not method.bits or method.bits == bits or model.shape.quantization_bits is None
            if (model.shape.quantization or "").lower() in method.reads and fits and method.in_version(vllm):
                yield name, method


@dataclass(frozen=True, slots=True)
class Wish:
    """The quantisation that the user asks for, and where it should run."""

    name: str | None  # the value of `quantization`; None to leave it to the plan
    vllm: str
    vendor: str
    sm: int | None
    extra: tuple[str, ...]  # the user's own vLLM flags


def release(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (10_000,)


def check_quantization(model: Model, wish: Wish, table: QuantTable) -> None:
    """Check the checkpoint's own quantisation and the user's wish.

    Raises:
        UsageError: the method does not exist, or does not suit the checkpoint.
        CannotPlanError: this hardware has no kernels for it.
    """
    if wish.name is not None and wish.name not in ("none", "online"):
        _check_name(wish.name, wish, table)
    if wish.name == "online" and not names_flag(wish.extra, "--quantization-config"):
        raise UsageError(
            "quantization=online says nothing without --quantization-config.",
            f"Name a method instead: {_while_loading(wish, table)}.",
        )
    if model.shape.quantization == "unknown":
        raise UsageError(
            f"{model.name} is quantised, and its config.json does not say how (quant_method).",
            "Use another checkpoint: 16-bit weights, fp8, AWQ, GPTQ or compressed-tensors.",
        )
    if model.shape.quantization is not None:
        _check_checkpoint(model, wish, table)
    elif wish.name is not None and (method := table.methods.get(wish.name)) is not None:
        _check_plain(model, wish.name, method, wish, table)


def wished_ways(model: Model, name: str, table: QuantTable) -> tuple[Model, Precision]:
    """Return the model and the precision of its weights for a checked wish of the user."""
    method = table.methods.get(name)
    if method is None:  # "none", or a plugin's method, whose weights may have 16 bits
        return model, "16-bit"
    return replace(model, only_experts=method.experts), "w4" if method.bits == 4 else "fp8"


def _check_name(name: str, wish: Wish, table: QuantTable) -> None:
    method = table.methods.get(name)
    if (method is None or not method.in_version(wish.vllm)) and name in table.gone:
        raise UsageError(f"vLLM {wish.vllm} has no quantisation {name!r}.", table.gone[name])
    if method is None:
        return  # the plan's command is checked against vLLM's own names
    if method.deprecated and release(wish.vllm) >= _REFUSES_DEPRECATED and _ALLOW_DEPRECATED not in wish.extra:
        raise UsageError(
            f"{name} is deprecated in vLLM {wish.vllm}, which refuses to start with it.",
            f"Use another method, or pass -- {_ALLOW_DEPRECATED}.",
        )
    _check_hardware(name, method, wish, table)


def _check_hardware(name: str, method: Method, wish: Wish, table: QuantTable) -> None:
    others = table.vendors.get(wish.vendor)
    if others is not None and name not in others:
        platform = {"cpu": "a processor", "gaudi": "Gaudi", "amd": "AMD's cards"}.get(wish.vendor, wish.vendor)
        raise CannotPlanError(
            f"vLLM has no {name} on {platform}.", f"There are: {', '.join(sorted(others))}; or leave quantization out."
        )
    if others is None and not method.runs_on(wish.sm):
        sm = wish.sm or 0
        raise CannotPlanError(
            f"{name} needs {method.cards}; this card has {sm // 10}.{sm % 10}.",
            f"Here {_while_loading(wish, table)} works; or use an AWQ or GPTQ checkpoint, or another card.",
        )


def _check_plain(model: Model, name: str, method: Method, wish: Wish, table: QuantTable) -> None:
    if not method.quantises_while_loading(wish.vllm):
        repos = [found.repo for found in model.quantized if found.bits == method.bits or not method.bits]
        alike = [repo for repo in repos if not method.bits or any(read in repo.casefold() for read in method.reads)]
        remedy = f"Name one: --model {alike[0]}." if alike else f"No such checkpoint of {model.name} is known here."
        if wish.vendor in ("nvidia", "amd"):
            remedy += f" {_while_loading(wish, table)} makes 8 bits while loading."
        raise UsageError(
            f"{name} needs a checkpoint that was prepared for it, and {model.name}'s weights have 16 bits.", remedy
        )
    if method.experts and not model.shape.text.experts:
        raise UsageError(
            f"{name} shrinks only the experts of a mixture, and {model.name} has none.",
            f"Use {_while_loading(wish, table)}.",
        )


def _check_checkpoint(model: Model, wish: Wish, table: QuantTable) -> None:
    """Check that a quantised checkpoint can be served here, and that the wish does not contradict it."""
    state = f"{model.name} is quantised already ({model.shape.quantization}, {SPOKEN[model.own_precision]} weights)"
    serving = dict(table.reading(model, wish.vllm))
    if all(method.asked for method in serving.values()):
        kind = model.shape.quantization or ""
        raise UsageError(
            f"vLLM {wish.vllm} serves no checkpoint quantised with {kind}.",
            table.gone.get(kind, "Name the original checkpoint, or one in AWQ, GPTQ, fp8 or compressed-tensors."),
        )
    if wish.name == "none":
        raise UsageError(f"{state}, so it has no 16-bit weights.", "Name the original checkpoint with --model.")
    known = wish.name in table.methods
    if known and wish.name not in serving:
        raise UsageError(f"{state}: {wish.name} does not read it.", "Leave quantization out: vLLM finds it by itself.")
    if known and serving[wish.name or ""].experts and not model.shape.text.experts:
        raise UsageError(f"{wish.name} is for mixtures of experts.", "Leave quantization out: vLLM finds it by itself.")
    if not known:  # vLLM finds the method by itself
        refusals: list[str] = []
        for name, method in serving.items():
            try:
                if not method.asked:
                    _check_hardware(name, method, wish, table)
                    return
            except CannotPlanError as error:
                refusals.append(error.what)
        raise CannotPlanError(f"{state}. {refusals[0]}", "Name another checkpoint of the model, or another card.")


def _while_loading(wish: Wish, table: QuantTable) -> str:
    """Return the option that converts weights to 8 bits while loading on this hardware; or "no method"."""
    others = table.vendors.get(wish.vendor)
    for name in ("fp8_per_channel", "fp8_per_tensor"):
        if table.methods[name].runs_on(wish.sm) if others is None else name in others:
            return f"--set quantization={name}"
    return "no method"
