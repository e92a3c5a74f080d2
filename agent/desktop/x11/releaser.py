"""Controls the process in `releaser_process.py`: tells it what the hand will press, before it is pressed."""

from pathlib import Path

from agent.desktop.input.helper_process import HelperProcess
from agent.safety.stop import REASONS, StopSwitch, shared_descriptor


class Releaser(HelperProcess):
    """Releases the keys and buttons that one hand left pressed. `releaser_process.py` describes what it is told.

    Once everything is released, the process removes `notes`, the file that lists what is pressed.
    """

    def __init__(self, stop: StopSwitch, notes: Path) -> None:
        shared = shared_descriptor()
        super().__init__(
            Path(__file__).with_name("releaser_process.py"),
            str(-1 if shared is None else shared),
            ",".join(str(int(number)) for number in REASONS),
            str(notes),
            files=() if shared is None else (shared,),
        )
        stop.on_stop(lambda: self.tell("stop"))
