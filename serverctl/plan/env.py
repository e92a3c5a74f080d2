"""The environment variables of a server."""

from collections.abc import Mapping, Sequence

from serverctl.hardware.facts import Gpu
from serverctl.plan.goal import Plan, Preset, Reason
from serverctl.plan.quantization import release
from serverctl.plan.settings import Settings

#: vLLM's default limit for request bodies (VLLM_HTTP_MAX_REQUEST_BODY_SIZE), bytes.
_DEFAULT_BODY = 32 * 1024**2
_LARGE_BODY = 256 * 1024**2
#: Upper estimate of bytes per pixel of a PNG screenshot in base64: screens with photographs take 2 bytes a pixel.
_BYTES_PER_PIXEL = 2.7
#: The first vLLM known to accept UUIDs in CUDA_VISIBLE_DEVICES. Earlier versions fail with
#: "invalid literal for int()" (vllm#41848).
_TAKES_NAMES = (0, 32)
#: Variables that pin a server to its cards; inside a container the runtime pins it instead.
PINS = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HABANA_VISIBLE_MODULES")
LOG_LEVEL = "VLLM_LOGGING_LEVEL"


def hides_stages(environ: Mapping[str, str]) -> bool:
    """Return whether variables hide vLLM's lines at INFO, which show the stages of a start and its memory."""
    return environ.get(LOG_LEVEL, "INFO").upper() in ("WARNING", "ERROR", "CRITICAL")


def takes_names(vllm: str) -> bool:
    """Return whether a version of vLLM accepts UUIDs of cards in CUDA_VISIBLE_DEVICES."""
    return release(vllm) >= _TAKES_NAMES


def replica_env(plan: Plan, cards: Sequence[Gpu], vllm: str) -> Mapping[str, tuple[str, Reason]]:
    """Return the plan's variables for one of its servers, pinned to that server's cards if there are several."""
    if len(plan.replicas) == 1:
        return plan.env
    others = {name: value for name, value in plan.env.items() if name not in PINS}
    return {**others, **pins(cards, vllm)}


def _have_names(cards: Sequence[Gpu]) -> bool:
    return bool(cards) and cards[0].vendor == "nvidia" and all(card.uuid for card in cards)


def pins(cards: Sequence[Gpu], vllm: str) -> Mapping[str, tuple[str, Reason]]:
    """Return the variables that pin a server to its cards: by UUID, or by index for an older vLLM and unnamed cards."""
    numbers = ",".join(str(card.index) for card in cards)
    reason = Reason("pins the server to its cards", "hardware")
    if cards[0].vendor == "gaudi":
        return {"HABANA_VISIBLE_MODULES": (numbers, reason)}
    if _have_names(cards) and takes_names(vllm):
        names = ",".join(card.uuid for card in cards)
        return {
            "CUDA_VISIBLE_DEVICES": (names, Reason("pins the server to its cards by their stable names", "hardware"))
        }
    order = Reason("numbers cards as nvidia-smi does", "hardware")
    return {"CUDA_DEVICE_ORDER": ("PCI_BUS_ID", order), "CUDA_VISIBLE_DEVICES": (numbers, reason)}


def environment(
    settings: Settings, preset: Preset, gpus: tuple[Gpu, ...], vllm: str
) -> Mapping[str, tuple[str, Reason]]:
    """Return a server's variables with their reasons. The API key is not included: it is created at the start."""
    waits = "slow disks and first compilations outlast the default of 600 s; this controller watches for stalls"
    fixed = {
        "VLLM_MEDIA_URL_ALLOW_REDIRECTS": ("0", "an allowed domain cannot send the server to another one"),
        "VLLM_NO_USAGE_STATS": ("1", "nothing is reported to anybody"),
        "VLLM_ENABLE_STARTUP_PLAN": ("1", "the next start reuses the profiled size of the KV cache"),
        "VLLM_ENGINE_READY_TIMEOUT_S": ("3600", waits),
    }
    body = (settings.images or 0) * (settings.longest_edge or 16_777_216) * _BYTES_PER_PIXEL
    if body > _DEFAULT_BODY:
        why = "several large screenshots in base64 can exceed the default of 32 MiB"
        fixed["VLLM_HTTP_MAX_REQUEST_BODY_SIZE"] = (str(_LARGE_BODY), why)
    found = {name: (value, Reason(why, "vllm/envs.py")) for name, (value, why) in fixed.items()}
    return {**found, **(pins(gpus, vllm) if _have_names(gpus) else {}), **of_preset(preset)}


def of_preset(preset: Preset) -> Mapping[str, tuple[str, Reason]]:
    """Return the variables that a preset sets."""
    return {name: (value, Reason(f"preset {preset.name}", "configs/presets")) for name, value in preset.env.items()}
