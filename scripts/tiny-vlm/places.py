"""Where a Qwen2.5-VL gets absolute places from: starting weights of its first layer, set by hand.

Its vision tower knows only what lies beside what, and attention only differences of positions. So the chat template
puts eight anchor tokens before each image, and three heads of the first layer look from every cell at them alone. How
much each anchor gets depends on the cell's distance in rows and columns, as M-RoPE turns their keys; their values are
the columns of a Hadamard matrix, so that what comes out are the sines and cosines of row and column, one after another.
All of it stays trainable.
"""

from typing import Any

import torch
from torch import Tensor
from vocabulary import Speller

#: Per head, its rotary pairs (of the 32 of a head): 1..4 turn with the row, 5..31 with the column, 0 with neither.
PAIRS = ((1, 2, 3), (4, 5, 6), (7, 8, 9))
#: Score that all anchors get, so that thousands of other tokens get nothing; e to the 9 is 8,000.
BASE = 9.0
#: Score that depends on the place: small, as the softmax is to be nearly linear.
SWING = 0.2
#: What comes out, against other parts of the hidden state.
LOUDNESS = 10.0


def start_of_places(text: Any, speller: Speller) -> None:
    """Sets the anchors' embeddings, and the first layer's attention."""
    count = len(speller.anchors)
    hidden: int = text.embed_tokens.weight.shape[1]
    own = torch.arange(hidden - count, hidden)  # components that only the anchors have
    text.embed_tokens.weight[:, own] = 0.0
    for one, token in enumerate(speller.anchors):
        text.embed_tokens.weight[token] = 0.0
        text.embed_tokens.weight[token, own[one]] = 0.5
    attention = text.layers[0].self_attn
    size: int = attention.head_dim
    strength = hidden**0.5  # of the only component of an anchor, after the norm
    turns: Tensor = text.rotary_emb.inv_freq
    two = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    signs = torch.kron(torch.kron(two, two), two)  # a Hadamard matrix of 8 x 8
    groups: int = attention.num_key_value_groups
    for layer in (attention.q_proj, attention.k_proj, attention.v_proj):
        layer.bias.zero_()
    for head, pairs in enumerate(PAIRS):
        group = head // groups
        rows = slice(head * size, (head + 1) * size)
        attention.q_proj.weight[rows] *= 0.02
        wave = torch.zeros(count, size // 2, dtype=torch.complex64)  # per anchor, its key by rotary pair
        for k, pair in enumerate(pairs):
            wave[:, pair] = torch.complex(signs[:, 1 + 2 * k], signs[:, 2 + 2 * k]) * SWING * size**0.5
        wave[:, 0] = BASE * size**0.5 / 4
        # Anchor n stands count - n + 1 places before the image's first token: vision_start is between.
        back = torch.arange(count + 1, 1, -1)[:, None]
        wave = wave * torch.exp(1j * turns[None] * back)
        # Heads of one group share keys, each asks for its own pairs.
        asked = torch.zeros(size)
        asked[0] = 4.0
        asked[list(pairs)] = 1.0
        attention.q_proj.bias[rows] = asked
        keys = slice(group * size, (group + 1) * size)
        if head % groups == 0:
            attention.k_proj.weight[keys] *= 0.3
            attention.k_proj.weight[keys, own[0] : own[-1] + 1] = 0.0
            attention.v_proj.weight[keys] *= 0.3
            attention.v_proj.weight[keys, own[0] : own[-1] + 1] = 0.0
        used = torch.tensor(pairs if head % groups else (0, *pairs))
        flat = torch.cat([wave.real, wave.imag], 1)  # rotary pairs are components i and i + size / 2
        for part in (used, used + size // 2):
            attention.k_proj.weight[keys.start + part, own[0] : own[-1] + 1] = flat[:, part].T / strength
        values = signs[:, 1 : 1 + 2 * len(pairs)].T * LOUDNESS / strength
        attention.v_proj.weight[keys.start : keys.start + len(values), own[0] : own[-1] + 1] = values
    # Each head's waves go to directions of their own.
    basis = torch.linalg.qr(torch.randn(hidden - count, 6 * len(PAIRS)))[0]
    for head in range(len(PAIRS)):
        columns = slice(head * size, head * size + 6)
        attention.o_proj.weight[:, head * size : (head + 1) * size] *= 0.1
        attention.o_proj.weight[: hidden - count, columns] = basis[:, head * 6 : head * 6 + 6]
