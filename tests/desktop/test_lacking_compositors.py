"""Compositors that offer too little: what they keep from programs is said, and nothing is promised in its place."""

from pathlib import Path

import pytest
from stubs.fake_compositor import FakeCompositor

from agent.desktop.factory import asks_consent, check_display, wants_portal
from agent.desktop.protocol.clipboard import ClipboardWatch
from agent.desktop.wayland.selection import WlrootsClipboard
from foundation.errors import EnvironmentLacksError

POINTERS, KEYBOARDS = "zwlr_virtual_pointer_manager_v1", "zwp_virtual_keyboard_manager_v1"


@pytest.mark.parametrize(
    ("offered", "kept"),
    [
        ((), "neither see nor touch the screen by"),
        ((POINTERS, "wl_seat"), "neither see nor touch the screen by"),
        (("zwlr_screencopy_manager_v1", "wl_seat"), "see the screen, but not touch it, by"),
        ((POINTERS, KEYBOARDS, "wl_seat"), "touch the screen, but not see it, by"),
    ],
)
def test_what_a_compositor_keeps_from_programs_is_said(tmp_path: Path, offered: tuple[str, ...], kept: str) -> None:
    environ = {"WAYLAND_DISPLAY": "wayland-fake", "XDG_RUNTIME_DIR": str(tmp_path)}
    with FakeCompositor(tmp_path, offered=offered):
        with pytest.raises(EnvironmentLacksError, match=kept):
            check_display(environ)
        assert wants_portal(environ), "the doctor says what a portal would need"
        assert not asks_consent(environ), "nobody asks the person where there is no portal"


def test_a_clipboard_that_no_program_is_told_of_is_said_to_be_that(tmp_path: Path) -> None:
    with FakeCompositor(tmp_path) as compositor:
        watch = ClipboardWatch(WlrootsClipboard(compositor.path))
        watch.begin()
        assert watch.remark == "The clipboard is not watched: this desktop tells no program what it holds."
        assert watch.changes() == []
