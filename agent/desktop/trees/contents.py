"""Reads the contents of elements (text of fields, numbers of sliders, choice of combo boxes) and their labels."""

import math
from collections.abc import Sequence

from agent.desktop.trees.bus import Body, Question
from agent.desktop.trees.roles import COMBO_BOX, EDITABLE, FIELDS, PASSWORD, RANGES, TERMINAL, has
from agent.desktop.trees.shape import LONGEST_NAME, Draft, Tree
from agent.desktop.trees.tree import Ref, getter, method, refs, text_of, variant
from agent.desktop.trees.wire import Call
from agent.safety.text import one_line

#: Characters that are kept of a text, and read of a terminal. Texts keep their beginning, terminals their end.
_LONGEST_TEXT, _LONGEST_TERMINAL = 1000, 8000
_NUMBERS = ("CurrentValue", "MinimumValue", "MaximumValue")
_LABELLED_BY = 2  # AtspiRelationType
#: Names of first actions that make a part of a page clickable. "clickAncestor" and the like belong to an ancestor.
_TAKES = frozenset({"click", "press", "jump", "activate", "check", "uncheck", "toggle", "open"})


def fill(tree: Tree, wanted: Sequence[Draft]) -> Question[None]:
    """Read values, limits and labels into drafts. The contents of password fields are never read."""
    asked: list[tuple[Draft, str, Call]] = []
    for draft in wanted:
        ref = draft.node.ref
        if draft.role == PASSWORD:
            asked.append((draft, "label", _relations(ref)))
            continue
        if draft.role in RANGES:
            asked += [(draft, name, getter(ref, "Value", name)) for name in _NUMBERS]
        elif draft.role == TERMINAL:
            asked.append((draft, "caret", getter(ref, "Text", "CaretOffset")))
            asked.append((draft, "text", method(ref, "Text", "GetText", "s", "ii", 0, _LONGEST_TERMINAL)))
        elif draft.role in FIELDS or (has(draft.node.states, EDITABLE) and draft.role != COMBO_BOX):
            asked.append((draft, "text", method(ref, "Text", "GetText", "s", "ii", 0, _LONGEST_TEXT)))
        elif draft.role == COMBO_BOX:
            asked.append((draft, "choice", method(ref, "Selection", "GetSelectedChild", "(so)", "i", 0)))
        if draft.role in FIELDS | RANGES | {COMBO_BOX} or (draft.is_control and not draft.name):
            asked.append((draft, "label", _relations(ref)))
    replies = yield [call for _, _, call in asked]
    names: list[tuple[Draft, str, Ref]] = []
    numbers: dict[tuple[Ref, str], float | None] = {}
    carets: dict[Ref, int] = {}
    for (draft, what, _), reply in zip(asked, replies, strict=True):
        if what == "text" and reply:
            text = str(reply[0])
            if draft.role == TERMINAL:  # up to the cursor, which may be on an empty line
                text = text[: max(carets.get(draft.node.ref, 0), len(text.rstrip()))][-_LONGEST_TEXT:]
            draft.value = text[:_LONGEST_TEXT]
        elif what == "caret" and reply:
            carets[draft.node.ref] = variant(reply, "i") or 0
        elif what in _NUMBERS and reply:
            numbers[draft.node.ref, what] = variant(reply, "d")
        elif what == "choice" and (chosen := refs([[reply[0]]] if reply else None)):  # type: ignore[arg-type]  # it checks
            names.append((draft, what, chosen[0]))
        elif what == "label" and (labels := _labels(reply)):
            names.append((draft, what, labels[0]))
    yield from _name(tree, names)
    for draft in wanted:
        value, *limits = (numbers.get((draft.node.ref, name)) for name in _NUMBERS)
        if value is not None and math.isfinite(value):
            draft.value = f"{value:.6g}"
        match limits:
            case [float(least), float(most)] if math.isfinite(least) and math.isfinite(most):
                draft.limits = least, most
        if draft.role == COMBO_BOX and draft.value is None:
            draft.value = next(iter(tree.labels(draft.node.ref)), None) or (draft.name if draft.label else None)
        if draft.label and not draft.name:
            draft.name = draft.label


def clicked(candidates: Sequence[Ref]) -> Question[list[Ref]]:
    """Return those of these parts of a page that are clickable, by the name of their first action."""
    replies = yield [method(ref, "Action", "GetName", "s", "i", 0) for ref in candidates]
    return [ref for ref, reply in zip(candidates, replies, strict=True) if reply and reply[0] in _TAKES]


def _name(tree: Tree, wanted: Sequence[tuple[Draft, str, Ref]]) -> Question[None]:
    """Set labels and shown choices of drafts to the names of other nodes."""
    unknown = [ref for _, _, ref in wanted if ref not in tree.nodes]
    replies = yield [getter(ref, "Accessible", "Name") for ref in unknown]
    told = {ref: text_of(("s", variant(reply, "s") or "")) for ref, reply in zip(unknown, replies, strict=True)}
    for draft, what, ref in wanted:
        known = tree.nodes.get(ref)
        written = tree.name(known) if known is not None else one_line(told[ref], LONGEST_NAME)
        if not written:
            continue
        if what == "choice":
            draft.value = written
        else:
            draft.label = written


def _relations(ref: Ref) -> Call:
    return method(ref, "Accessible", "GetRelationSet", "a(ua(so))")


def _labels(reply: Body) -> list[Ref]:
    relations = reply[0] if reply else ()
    return [tuple(ref) for kind, targets in relations if kind == _LABELLED_BY for ref in targets[:1]]
