"""The networks: transformers' own models with starting weights that suit their small widths, and how they are run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from inputs import patches, positions
from PIL import Image
from scenes import NAMES, SHAPES
from torch import Tensor, nn
from vocabulary import Speller
from words import NUMBERS


class Helpers(nn.Module):
    """The throw-away heads: what covers a cell, and where its centre is."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.kind = nn.Linear(hidden, 1 + len(NAMES) + 1 + len(SHAPES))  # colour (or none), shape (or none)
        self.x = nn.Linear(hidden, hidden)
        self.y = nn.Linear(hidden, hidden)


@dataclass
class Seen:
    """What the vision tower made of images: embeddings of their cells, in order, and what goes in deeper."""

    embeddings: Tensor  # (images x cells, hidden)
    deep: list[Tensor]
    grids: list[list[int]]

    def repeated(self, owners: Tensor) -> "Seen":
        """The same for rows that ask about these images: `owners` names each row's image."""
        count = len(self.grids)

        def spread(part: Tensor) -> Tensor:
            return part.reshape(count, len(part) // count, -1)[owners].flatten(0, 1)

        return Seen(spread(self.embeddings), [spread(part) for part in self.deep], [self.grids[0]] * len(owners))


class Network:
    """A model with its vocabulary."""

    def __init__(self, folder: Path, speller: Speller) -> None:
        self.speller = speller
        self.model = _qwen3(folder)
        with torch.no_grad():
            self._start()

    @property
    def table(self) -> Tensor:
        """The embeddings of tokens, which are the output layer too."""
        weight: Tensor = self.model.model.language_model.embed_tokens.weight
        return weight

    @property
    def numbers(self) -> Tensor:
        """The embeddings of the numbers."""
        return self.table[torch.tensor(self.speller.numbers)]

    def see(self, images: Sequence[Image.Image]) -> Seen:
        """What the vision tower makes of images of one size."""
        pixels, grid = patches(images)
        out = self.model.model.visual(pixels, grid_thw=grid)
        return Seen(out.pooler_output, list(getattr(out, "deepstack_features", None) or []), grid.tolist())

    def read(self, rows: Sequence[Sequence[int]], seen: Seen) -> Tensor:
        """Hidden states (rows, length, hidden) of padded rows of ids, each with the image of its place in `seen`."""
        length = max(map(len, rows))
        ids = torch.full((len(rows), length), self.speller.pad)
        place = torch.zeros(3, len(rows), length, dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
            place[:, i, : len(row)] = positions(row, self.speller.image, [seen.grids[i]])
        mask = ids == self.speller.image
        inputs = self.model.model.language_model.embed_tokens(ids)
        inputs = inputs.masked_scatter(mask[..., None], seen.embeddings.to(inputs.dtype))
        more = {"visual_pos_masks": mask, "deepstack_visual_embeds": seen.deep}
        out = self.model.model.language_model(inputs_embeds=inputs, position_ids=place, use_cache=False, **more)
        hidden: Tensor = out.last_hidden_state
        return hidden

    def save(self, folder: Path) -> None:
        """Writes the weights in bfloat16, as they are served."""
        from safetensors.torch import save_file

        state = self.model.state_dict().items()
        weights = {name: v.detach().to(torch.bfloat16).contiguous() for name, v in state if name != "lm_head.weight"}
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    def load(self, folder: Path) -> None:
        """Goes on from the weights of a folder."""
        from safetensors.torch import load_file

        self.model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)

    def _start(self) -> None:
        """Starting weights: 0.02, made for widths of thousands, is too little here; numbers and places are waves."""
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Linear) and "lm_head" not in name:
                last = name.endswith(("o_proj", "down_proj", "attn.proj")) or ("blocks" in name and "fc2" in name)
                gain = (0.5 if last else 1) * (1 if "visual" in name else 0.7)
                module.weight.normal_(0, module.in_features**-0.5 * gain)
        table = self.table
        table.normal_(0, 0.08)
        features = waves(torch.arange(NUMBERS) / 1000, [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
        basis = torch.linalg.qr(torch.randn(table.shape[1], features.shape[1]))[0]
        noise = torch.randn(NUMBERS, table.shape[1]) * 0.01
        table[torch.tensor(self.speller.numbers)] = features @ basis.T * 0.6 + noise
        place = self.model.model.visual.pos_embed.weight
        side = math.isqrt(place.shape[0])
        one = waves(torch.arange(side) / (side - 1), [0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
        both = torch.cat([one[:, None].expand(-1, side, -1), one[None].expand(side, -1, -1)], -1).reshape(side**2, -1)
        basis = torch.linalg.qr(torch.randn(place.shape[1], both.shape[1]))[0]
        place.copy_(both @ basis.T * 3.0 + torch.randn_like(place) * 0.02)


def waves(values: Tensor, frequencies: Sequence[float]) -> Tensor:
    """Sines and cosines of values (n) at frequencies in full turns: (n, 2 x frequencies)."""
    angle = values[:, None] * torch.tensor(frequencies)[None] * 2 * math.pi
    return torch.cat([torch.sin(angle), torch.cos(angle)], 1)


def _qwen3(folder: Path) -> Any:
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    config = Qwen3VLConfig.from_pretrained(folder)
    config._attn_implementation = "sdpa"
    return Qwen3VLForConditionalGeneration(config).float()  # type: ignore[no-untyped-call]
