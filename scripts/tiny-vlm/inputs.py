"""What the model is given: patches of images and positions of tokens, exactly as transformers' processor makes them."""

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from words import CELL


def patches(images: Sequence[Image.Image]) -> tuple[Tensor, Tensor]:
    """What the image processor makes of images of one size, whose sides are multiples of a cell."""
    side = CELL // 2
    batch = torch.from_numpy(np.stack([np.asarray(image) for image in images])).float() / 127.5 - 1.0
    n, height, width, _ = batch.shape
    h, w = height // side, width // side
    batch = batch.reshape(n, h // 2, 2, side, w // 2, 2, side, 3).permute(0, 1, 4, 2, 5, 7, 3, 6)
    batch = batch[:, :, :, :, :, :, None].expand(-1, -1, -1, -1, -1, -1, 2, -1, -1)
    return batch.reshape(n * h * w, 3 * 2 * side * side), torch.tensor([[1, h, w]] * n)


def positions(ids: Sequence[int], image: int, grids: Sequence[Sequence[int]]) -> Tensor:
    """M-RoPE positions (3, length): text counts on, an image's cells have their row and column."""
    out: list[Tensor] = []
    now, i, g = 0, 0, 0
    while i < len(ids):
        if ids[i] == image:
            _, h, w = grids[g]
            g += 1
            h, w = h // 2, w // 2
            rows = torch.arange(h).repeat_interleave(w)
            out.append(torch.stack([torch.zeros(h * w, dtype=torch.long), rows, torch.arange(w).repeat(h)]) + now)
            now += max(h, w)
            i += h * w
        else:
            j = i
            while j < len(ids) and ids[j] != image:
                j += 1
            out.append((torch.arange(j - i) + now).expand(3, -1))
            now += j - i
            i = j
    return torch.cat(out, 1)
