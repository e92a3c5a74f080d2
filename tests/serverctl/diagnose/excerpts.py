"""What failing starts say, class by class, in the wordings of several versions of vLLM and of what it stands on."""

# ruff: noqa: E501  (lines of logs are as long as they are)

import tomllib
from dataclasses import dataclass
from pathlib import Path

_DATA = tomllib.loads(
    (Path(__file__).resolve().parents[1] / "data" / "failing_starts.toml").read_text(encoding="utf-8")
)
#: The first lines of a start, up to a stage.
STAGES: dict[str, list[str]] = _DATA["stages"]
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 11.53 GiB of"
    " which 187.75 MiB is free. Including non-PyTorch memory, this process has 11.33 GiB memory in use."
)
TRACE = (
    "Traceback (most recent call last):",
    '  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/core.py", line 1299, in run_engine_core',
    "    engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)",
    "                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
)


@dataclass(frozen=True)
class Excerpt:
    """One failure: its kind, the stage it comes at, and the lines that say so."""

    kind: str
    stage: str
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.lines[0][:40]}"


EXCERPTS = tuple(Excerpt(each["kind"], each["stage"], tuple(each["lines"])) for each in _DATA["excerpt"])


def log(excerpt: Excerpt, version: str = "0.33") -> list[str]:
    """A whole log of a start that fails so, root cause first and the engine's generic end last."""
    lines = ["/usr/lib/python3.12/site-packages/x.py:24: DeprecationWarning: old", "  warnings.warn("]
    for stage, marks in STAGES.items():
        if excerpt.stage == "launched":
            break
        lines += marks
        if stage == excerpt.stage:
            break
    if version == "0.33" and excerpt.stage not in ("launched", "imported", "configured", "listening"):
        name = "(EngineCore pid=4711) "
        lines.append(f"{name}ERROR 11-21 00:25:33 [core.py:1584] EngineCore failed to start.")
        lines += [f"{name}ERROR 11-21 00:25:33 [core.py:1584] {line}" for line in (*TRACE, *excerpt.lines)]
        lines += [f"{name}Process EngineCore:", *(f"{name}{line}" for line in (*TRACE, *excerpt.lines))]
        name = "(APIServer pid=4700) "
        lines += [f"{name}{line}" for line in TRACE]
        end = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
        lines.append(name + end)
    else:
        lines += [*TRACE, *excerpt.lines]
    return lines


def until(stage: str) -> list[str]:
    """The log of a start up to and with a stage."""
    lines: list[str] = []
    for name, marks in STAGES.items():
        lines += marks
        if name == stage:
            return lines
    raise KeyError(stage)
