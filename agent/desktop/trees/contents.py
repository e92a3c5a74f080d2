"""Reads the contents of elements (text of fields, numbers of sliders, choice of combo boxes) and their labels."""

import math
from collections.abc import Sequence

from agent.desktop.trees.bus import Question, together
from agent.desktop.trees.hits import reply_ref
from agent.desktop.trees.roles import COMBO_BOX, EDITABLE, FIELDS, PASSWORD, RANGES, TERMINAL, has
from agent.desktop.trees.shape import LONGEST_NAME, Draft, Tree
from agent.desktop.trees.tree import Ref, getter, method, text_of, variant
from agent.desktop.trees.wire import Call
from agent.safety.text import one_line

#: Most characters to keep of a text, and to read from a terminal. Texts keep their beginning, terminals their end.
_LONGEST_TEXT, _LONGEST_TERMINAL = 1000, 8000
_NUMBERS = ("CurrentValue", "MinimumValue", "MaximumValue")
_LABELLED_BY = 2  # AtspiRelationType
#: Names of first actions that make a part of a page clickable. "clickAncestor" and the like belong to an ancestor.
_TAKES = frozenset({"click", "press", "jump", "activate", "check", "uncheck", "toggle", "open"})


def fill(tree: Tree, wanted: Sequence[Draft]) -> Question[None]:
    """Read values, limits and labels into drafts. The contents of password fields are never read."""
    yield from together(*(_fill(tree, draft) for draft in wanted))


def _fill(tree: Tree, draft: Draft) -> Question[None]:
    ref, calls = draft.node.ref, dict[str, Call]()
    if draft.role in RANGES:
        calls = {name: getter(ref, "Value", name) for name in _NUMBERS}
    elif draft.role == TERMINAL:
        calls["caret"] = getter(ref, "Text", "CaretOffset")
        calls["text"] = method(ref, "Text", "GetText", "s", "ii", 0, _LONGEST_TERMINAL)
    elif draft.role == COMBO_BOX:
        calls["choice"] = method(ref, "Selection", "GetSelectedChild", "(so)", "i", 0)
    elif draft.role != PASSWORD and (draft.role in FIELDS or has(draft.node.states, EDITABLE)):
        calls["text"] = method(ref, "Text", "GetText", "s", "ii", 0, _LONGEST_TEXT)
    if draft.role in FIELDS | RANGES | {COMBO_BOX, PASSWORD} or (draft.is_control and not draft.name):
        calls["label"] = method(ref, "Accessible", "GetRelationSet", "a(ua(so))")
    if not calls:
        return
    replies = dict(zip(calls, (yield [*calls.values()]), strict=True))
    if text := replies.get("text"):
        draft.value = str(text[0])[:_LONGEST_TEXT]
        if draft.role == TERMINAL:  # up to the cursor, which may be on an empty line
            caret, full_text = variant(replies["caret"], "i") or 0, str(text[0])
            draft.value = full_text[: max(caret, len(full_text.rstrip()))][-_LONGEST_TEXT:]
    value, *limits = (variant(replies.get(name), "d") for name in _NUMBERS)
    if value is not None and math.isfinite(value):
        draft.value = f"{value:.6g}"
    match limits:
        case [float(least), float(most)] if math.isfinite(least) and math.isfinite(most):
            draft.limits = least, most
    relations = replies.get("label") or ((),)
    labels = [tuple(target) for kind, targets in relations[0] if kind == _LABELLED_BY for target in targets[:1]]
    choice, label = yield from together(
        _name_of(tree, reply_ref(replies.get("choice"))), _name_of(tree, labels[0] if labels else None)
    )
    draft.value, draft.label = choice or draft.value, label or draft.label
    if draft.role == COMBO_BOX and draft.value is None:
        draft.value = next(iter(tree.labels(ref)), None) or (draft.name if draft.label else None)
    draft.name = draft.name or draft.label


def clicked(candidates: Sequence[Ref]) -> Question[list[Ref]]:
    """Return the clickable ones among these parts of a page, recognized by the name of their first action."""
    replies = yield [method(ref, "Action", "GetName", "s", "i", 0) for ref in candidates]
    return [ref for ref, reply in zip(candidates, replies, strict=True) if reply and reply[0] in _TAKES]


def _name_of(tree: Tree, ref: Ref | None) -> Question[str]:
    """Return the name of any node; "" for None."""
    if ref is None:
        return ""
    if (known := tree.nodes.get(ref)) is not None:
        return tree.name(known)
    [reply] = yield [getter(ref, "Accessible", "Name")]
    return one_line(text_of(reply[0] if reply else None), LONGEST_NAME)
