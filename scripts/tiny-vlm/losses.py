"""What the training minimises: the answers, and denser things that a picture says of itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 -- its usual name
from networks import Helpers, Network, Seen
from PIL import Image
from scenes import ASKS, NAMES, SHAPES, Shape, scene
from torch import Tensor
from words import CELL, LOOK, NUMBERS, answer, counted, sigma


@dataclass
class Labels:
    """Per cell of an image: colour and shape (0: none, -1: only touched), and the centre of what is there."""

    colour: Tensor
    shape: Tensor
    centre: Tensor  # (cells, 2), as the model counts


def labels_of(shapes: Sequence[Shape], width: int, height: int) -> Labels:
    """The labels of an image."""
    side = CELL
    w, h = width // side, height // side
    colour, form = torch.zeros(h, w, dtype=torch.long), torch.zeros(h, w, dtype=torch.long)
    rows, columns = torch.meshgrid((torch.arange(h) + 0.5) * side, (torch.arange(w) + 0.5) * side, indexing="ij")
    centre = torch.stack([columns, rows], -1)
    for s in shapes:
        for cy in range(max(0, int((s.y - s.r) // side)), min(h, int((s.y + s.r) // side) + 1)):
            for cx in range(max(0, int((s.x - s.r) // side)), min(w, int((s.x + s.r) // side) + 1)):
                across = min(cx * side + side, s.x + s.r) - max(cx * side, s.x - s.r)
                down = min(cy * side + side, s.y + s.r) - max(cy * side, s.y - s.r)
                share = across * down / min(side**2, 4 * s.r * s.r)
                if share > 0.35 or (int(s.x // side) == cx and int(s.y // side) == cy):
                    colour[cy, cx], form[cy, cx] = 1 + NAMES.index(s.colour), 1 + SHAPES.index(s.shape)
                    centre[cy, cx] = torch.tensor([s.x, s.y])
                elif colour[cy, cx] == 0:
                    colour[cy, cx] = form[cy, cx] = -1
    there = torch.stack([counted(1.0, width) * centre[..., 0], counted(1.0, height) * centre[..., 1]], -1)
    return Labels(colour.flatten(), form.flatten(), there.reshape(-1, 2))


def soft_targets(values: Tensor, width: float | Tensor, count: int = NUMBERS) -> Tensor:
    """A Gaussian over the numbers around each value: near misses cost little."""
    distance: Tensor = torch.arange(count)[None].float() - values[:, None].float()
    return torch.softmax(-(distance**2) / (2 * width**2), -1)


def soft_loss(scores: Tensor, soft: Tensor) -> Tensor:
    """The cross entropy with soft targets above the least there can be, per row."""
    loss: Tensor = -(soft * F.log_softmax(scores.float(), -1)).sum(-1) - torch.special.entr(soft).sum(-1)
    return loss


def cell_losses(net: Network, helpers: Helpers, seen: Seen, labels: Sequence[Labels], size: tuple[int, int]) -> Tensor:
    """What covers each cell, and where its centre is, told by the throw-away heads from the embeddings."""
    colour, form = torch.cat([one.colour for one in labels]), torch.cat([one.shape for one in labels])
    centre = torch.cat([one.centre for one in labels])
    logits = helpers.kind(seen.embeddings).float()
    split = 1 + len(NAMES)
    weight = torch.ones(split)
    weight[0] = 0.2
    loss = F.cross_entropy(logits[:, :split], colour, weight, ignore_index=-1)
    loss = loss + F.cross_entropy(logits[:, split:], form, weight, ignore_index=-1)
    keep = _some(colour, 96)  # some cells are enough for the places
    on = (colour > 0)[keep]
    where = torch.zeros(())
    for axis, head in enumerate((helpers.x, helpers.y)):
        soft = soft_targets(centre[keep, axis], sigma(6.0, size[axis]))
        each = soft_loss(F.linear(head(seen.embeddings[keep]), net.numbers), soft)
        where = where + each[on].mean() + each[~on].mean()
    return loss + 0.3 * where / 4


def _some(colour: Tensor, count: int) -> Tensor:
    """So many cells of each sort at most: covered ones, and empty ones."""
    parts = ((colour > 0).nonzero()[:, 0], (colour == 0).nonzero()[:, 0])
    return torch.cat([part[torch.randperm(len(part))[:count]] for part in parts])


class Gaze:
    """Keeps what goes into the attention of the layer that looks, to work out where two of its heads look."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self.attention = net.model.model.language_model.layers[LOOK].self_attn
        self.attention.register_forward_pre_hook(self._keep, with_kwargs=True)

    def _keep(self, _: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.hidden: Tensor = named["hidden_states"] if "hidden_states" in named else positional[0]
        self.rotary: tuple[Tensor, Tensor] = named["position_embeddings"]

    def at(self, looks: Sequence[tuple[int, int, int, Tensor]]) -> Tensor:
        """-log of the attention that each place gives where it should; looks: (row, place, axis, cells).

        One head is for x and one for y: it looks at the cells when its number is due, and else at the first token.
        """
        a = self.attention
        shape = (*self.hidden.shape[:-1], -1, a.head_dim)
        query, key = a.q_norm(a.q_proj(self.hidden).view(shape)), a.k_norm(a.k_proj(self.hidden).view(shape))
        query, key = _turned(query.transpose(1, 2), self.rotary), _turned(key.transpose(1, 2), self.rotary)
        if not looks:
            return torch.zeros(())
        row, place = (torch.tensor(part) for part in list(zip(*looks, strict=True))[:2])
        heads = torch.arange(2) * a.num_key_value_groups  # the first query head of each key head
        # One lookup for all: a lookup's gradient is as large as the whole tensor.
        asking, keys = query[row[:, None], heads, place[:, None]], key[row]
        scores = torch.einsum("nhd,nhld->nhl", asking, keys[:, :2]).float() * a.scaling
        later = torch.arange(scores.shape[-1]) > place[:, None]
        scores = scores.masked_fill(later[:, None], -torch.inf)
        wanted = torch.zeros(scores.shape, dtype=torch.bool)
        for number, (_, _, due, cells) in enumerate(looks):
            wanted[number, due, cells] = True
            wanted[number, 1 - due, 0] = True
        total = torch.logsumexp(scores, -1) - torch.logsumexp(scores.masked_fill(~wanted, -torch.inf), -1)
        return total.mean()

    def handed(self, cells: tuple[Tensor, Tensor], centres: Tensor, sigmas: Sequence[float]) -> Tensor:
        """How well what the two heads would hand on of a cell names its centre: cells are (rows, places) of tokens."""
        a, loss = self.attention, torch.zeros(())
        seen = self.hidden[cells]
        values = a.v_proj(seen).view(len(seen), -1, a.head_dim)
        numbers = self.net.numbers
        for axis in (0, 1):
            start = axis * a.num_key_value_groups * a.head_dim
            out = F.linear(values[:, axis], a.o_proj.weight[:, start : start + a.head_dim])
            soft = soft_targets(centres[:, axis], sigmas[axis])
            loss = loss + soft_loss(F.linear(out, numbers), soft).mean()
        return loss / 2


def _turned(states: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary positions applied to (rows, heads, length, size)."""
    cos, sin = (part.unsqueeze(1) for part in rotary)
    half = states.shape[-1] // 2
    return states * cos + torch.cat((-states[..., half:], states[..., :half]), -1) * sin


@dataclass
class Parts:
    """The losses of one batch."""

    words: Tensor
    numbers: Tensor
    cells: Tensor
    gaze: Tensor
    handed: Tensor

    def total(self) -> Tensor:
        """All of them, weighed."""
        return 0.5 * self.words + self.numbers + self.cells + self.gaze + 0.5 * self.handed

    def values(self) -> list[float]:
        """As plain numbers, in the order of the fields."""
        return [float(v.detach()) for v in (self.words, self.numbers, self.cells, self.gaze, self.handed)]


def answers_of(
    net: Network, hidden: Tensor, rows: Sequence[Sequence[int]], starts: Sequence[int], sigmas: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Cross entropy of the answers: of the words, and of the numbers with soft targets."""
    where = [(i, j - 1, row[j]) for i, (row, start) in enumerate(zip(rows, starts, strict=True))
             for j in range(start, len(row))]  # fmt: skip
    at, before, target = torch.tensor(where).T
    logits = F.linear(hidden[at, before], net.table).float()
    values = torch.tensor([net.speller.value.get(int(token), -1) for token in target])
    numeric = values >= 0
    words = F.cross_entropy(logits[~numeric], target[~numeric])
    width = torch.tensor(sigmas).repeat(len(rows))[: int(numeric.sum()), None]  # x and y in turn
    soft = torch.zeros_like(logits[numeric])
    soft[:, torch.tensor(net.speller.numbers)] = soft_targets(values[numeric], width)
    return words, soft_loss(logits[numeric], soft).mean()


def batch_losses(
    net: Network, helpers: Helpers, gaze: Gaze, rng: Random, size: tuple[int, int], shots: list[Image.Image],
    *, count: int, questions: int, pixels: float, most: int,
) -> Parts:  # fmt: skip
    """The losses of one batch: `count` images of one size with up to `most` shapes, so many questions about each."""
    speller = net.speller
    scenes = [scene(rng, *size, shots, least=min(2, most), most=most) for _ in range(count)]
    labels = [labels_of(shapes, *size) for _, shapes in scenes]
    seen = net.see([image for image, _ in scenes])
    cells = len(seen.embeddings) // count
    rows, starts, owner, targets = [], [], [], []
    for i, (_, shapes) in enumerate(scenes):
        for s in rng.sample(shapes, min(questions, len(shapes))):
            asked = rng.choice(ASKS).format(c=s.colour, s=s.shape)
            ask = speller.question(asked, cells, speller.words.system_text(rng))
            x, y = round(counted(s.x, size[0])), round(counted(s.y, size[1]))
            rows.append(ask + speller.ids(answer(s.colour, s.shape, x, y) + "<|im_end|>"))
            starts.append(len(ask))
            owner.append(i)
            is_it = (labels[i].colour == 1 + NAMES.index(s.colour)) & (labels[i].shape == 1 + SHAPES.index(s.shape))
            targets.append(is_it.nonzero()[:, 0])
    hidden = net.read(rows, seen.repeated(torch.tensor(owner)))
    sigmas = [sigma(pixels, side) for side in size]
    words, numbers = answers_of(net, hidden, rows, starts, sigmas)
    first = [row.index(speller.image) for row in rows]
    looks = []
    for i, (row, start) in enumerate(zip(rows, starts, strict=True)):
        places = [j for j in range(start, len(row)) if row[j] in speller.value]
        if len(targets[i]):
            looks += [(i, j - 1, axis, first[i] + targets[i]) for axis, j in enumerate(places)]
    look = gaze.at(looks)
    on = torch.cat([torch.stack([torch.full_like(t, i), t + first[i]]) for i, t in enumerate(targets)], 1)
    centres = torch.cat([labels[o].centre[t] for t, o in zip(targets, owner, strict=True)])
    some = torch.randperm(on.shape[1])[:192]
    handed = gaze.handed((on[0, some], on[1, some]), centres[some], sigmas)
    return Parts(words, numbers, cell_losses(net, helpers, seen, labels, size), look, handed)
