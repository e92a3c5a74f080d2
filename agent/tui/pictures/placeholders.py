"""Whether the terminal draws kitty's images where characters stand for them (U+10EEEE), as if they were text.

kitty does so from 0.28 on; older ones, which Debian 12 has, know the images and show the characters as empty boxes.
"""

import sys

#: An image of one pixel that is asked about and not drawn; the key U, which the characters came with, is a mistake to
#: terminals that do not know them, and they stay silent.
_QUESTION = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24,U=1;AAAA\x1b\\"
#: Seconds that an answer is waited for: over a slow line it takes longer than to the library's own question before.
_PATIENCE = 0.3


def drawn_here() -> bool:
    """Ask the terminal; before the application runs, which reads what it answers."""
    from textual_image._terminal import TerminalError, capture_terminal_response

    terminal = sys.__stdout__
    if terminal is None:
        return False
    try:
        with capture_terminal_response("\x1b_G", "\x1b\\", _PATIENCE) as answer:
            terminal.write(_QUESTION)
            terminal.flush()
    except (TerminalError, TimeoutError, OSError, ValueError):
        return False
    return str(answer.sequence).endswith(";OK\x1b\\")
