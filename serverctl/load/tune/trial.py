"""The trial of a change: the same load on the server before and after, compared by intervals.

The load is generated with the same averages as the observed load.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from serverctl.load.bench.compare import Difference, compare_pairs
from serverctl.load.bench.workload import Workload
from serverctl.load.tune.bottleneck import limits
from serverctl.load.window import Window
from serverctl.models.model import Model

if TYPE_CHECKING:
    from serverctl.load.bench.report import Report


#: Screenshot sizes to try if the planned screen's tokens exceed the prompt, the largest first.
_SIZES = ((1280, 720), (640, 480), (320, 256))
#: Sizes to try before the planned screen, if images are the bottleneck.
_LARGE = ((3840, 2160), (2560, 1440))


def workload_like(
    window: Window, model: Model, screen: tuple[int, int], settings: Mapping[str, Any], large: bool = False
) -> Workload:
    """A load like the one that was seen: its concurrency, screenshots, text and lengths of answers.

    Screenshots are as large as the planned screen (width and height in pixels), or as the prompts that were seen allow;
    `large` tries larger ones first.
    """
    clients = min(window.clients, 32)
    bounds = limits("trial")
    requests = max(bounds["least_requests"], min(bounds["requests_per_client"] * clients, bounds["most_requests"]))
    images = min(round(window.images or 0), settings.get("images") or 64)
    prompt = round(window.prompt_tokens or 0)
    size, pictures = screen, 0
    sizes: list[tuple[int, int]] = [*(_LARGE if large else ()), screen, *_SIZES]
    for size in sizes:
        pictures = images * model.image_tokens(*size, settings.get("longest_edge")) if images else 0
        if pictures <= prompt:
            break
    usual = bounds["repeated"]  # an agent's usual share, if a cache is off
    return Workload(
        sizes=(size,),
        images=images,
        requests=max(requests, clients),
        concurrency=(clients,),
        max_tokens=max(2, round(window.answer_tokens or 0)),
        text_tokens=max(0, prompt - pictures),
        cache="cold",
        repeated_text=usual if settings.get("enable_prefix_caching") is False else round(window.prefix_hits or 0.0, 2),
        repeated_images=usual if settings.get("mm_processor_cache_gb") == 0 else round(window.image_hits or 0.0, 2),
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a trial."""

    better: bool  # the change is kept
    because: str  # one sentence
    difference: Difference | None  # ratio of the whole times, after to before; None if not comparable

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON values."""
        return {"better": self.better, "because": self.because,
                "end_to_end": None if self.difference is None else asdict(self.difference)}  # fmt: skip


def judge(before: "Report", after: "Report") -> Verdict:
    """The change is better if the whole times of the same requests are shorter, by more than noise."""
    if after.failed > before.failed:
        return Verdict(False, f"{after.failed} of {after.measured} requests failed", None)
    together = max((one.setting.concurrency for one in before.measurements), default=1)
    difference = compare_pairs(_times(before), _times(after), together)
    if difference is None:
        return Verdict(False, "too few requests were answered in both halves of the trial", None)
    text = f"requests take x{difference.ratio:.2f} of their time before"
    if difference.high is not None:
        text += f" (95 % interval {difference.low:.2f} to {difference.high:.2f})"
    if difference.verdict != "lower":
        return Verdict(
            False, f"{text}: {'worse' if difference.verdict == 'higher' else difference.verdict}", difference
        )
    if difference.ratio > 1 - limits("trial")["least_gain"]:
        return Verdict(False, f"{text}: better, but by too little to keep it", difference)
    return Verdict(True, f"{text}: better", difference)


def _times(report: "Report") -> Sequence[float | None]:
    return [time for measurement in report.measurements for time in measurement.by_number("total_ms")]
