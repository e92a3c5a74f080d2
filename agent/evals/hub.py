"""Gets a benchmark from the Hugging Face hub, once, with its archives of pictures unpacked."""

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

from foundation.errors import EnvironmentLacksError


def benchmark_folder(data: Path, tell: Callable[[str], None]) -> Path:
    """Return a benchmark's folder: `data` itself, or the data set of that name (ORG/NAME) on the hub.

    Raises EnvironmentLacksError: it cannot be got.
    """
    if data.exists() or re.fullmatch(r"[\w][\w.-]*/[\w.-]+", str(data)) is None:
        return data
    from huggingface_hub import snapshot_download

    tell(f"{data} is no folder here: getting the data set of that name from the hub ...")
    try:
        folder = Path(snapshot_download(str(data), repo_type="dataset"))
        for archive in sorted(folder.rglob("*.zip")):
            done = archive.with_suffix(".unpacked")
            if not done.exists():
                tell(f"unpacking {archive.name} ...")
                with zipfile.ZipFile(archive) as opened:
                    opened.extractall(archive.parent)
                done.touch()
    except Exception as error:  # of the hub's client, of the network and of the disk
        reason = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        raise EnvironmentLacksError(
            f"The data set {data} cannot be got: {reason}",
            "Is its name right, and the network there? Gated ones need HF_TOKEN. Or name a folder.",
        ) from error
    return folder
