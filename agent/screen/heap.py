"""Keeps the memory of screenshots between steps.

Every step allocates and frees a few images of 6 to 8 MB. glibc hands such pages back to the kernel at once, and taking
them again costs a page fault for every 4 KB: 10 ms of a 1080p step (scripts/bench/step.py).
"""

import ctypes
import sys
from functools import cache

# Parameters of mallopt(3).
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
#: Enough for a few 4K images; this is also about what the process may hold on to.
_KEPT_BYTES = 256 * 1024 * 1024
#: The largest value glibc takes for the mmap threshold (DEFAULT_MMAP_THRESHOLD_MAX on 64-bit systems).
_MMAP_BYTES = 32 * 1024 * 1024


@cache
def keep_freed_memory() -> bool:
    """Ask glibc not to give freed memory back; False where there is no glibc to ask."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)) and bool(mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))
