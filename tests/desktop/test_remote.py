"""What another machine is asked for: the events of an action together, and none of an action that was stopped."""

import json
import threading

import pytest
from stubs.http_stub import HttpStub

from agent.core.actions import Click, Drag, HoldKeys, KeyDown, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.input.hand import InputHand
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.remote import MachineServer, RemoteDesktop, RemoteInput, RemoteScreen
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, StoppedError, UsageError


class Machine:
    """Notes what it is asked to do, and answers as it is told."""

    def __init__(self):
        self.asked = []
        self.answer = {"status": "success", "output": "3 4\n", "error": "", "returncode": 0}
        self.stub = HttpStub(self._get, self._post)
        self.stop = StopSwitch()

    def _get(self, handler):
        handler.respond(b"no picture", "image/png")

    def _post(self, handler):
        *_, events = json.loads(handler.body())["command"]
        self.asked.append(json.loads(events) if events.startswith("[") else events)
        handler.respond(json.dumps(self.answer).encode(), "application/json")

    def hand(self):
        source = RemoteInput(self.stub.url, self.stop)
        return InputHand(self.stop, source, source, None)

    @property
    def events(self):
        """What was done in each request, without the pauses."""
        return [[tuple(event[1:]) for event in events] for events in self.asked]


@pytest.fixture
def machine():
    machine = Machine()
    yield machine
    machine.stub.close()


def test_the_events_of_an_action_are_one_request_with_the_pauses_between_them(machine):
    hand = machine.hand()
    hand.perform(Click(DesktopPoint(10, 20), count=2))
    [events] = machine.asked
    assert [tuple(event[1:]) for event in events] == [
        ("moveTo", 10, 20), ("mouseDown", "left"), ("mouseUp", "left"), ("mouseDown", "left"), ("mouseUp", "left"),
    ]  # fmt: skip
    assert events[0][0] == 0
    assert events[3][0] >= 0.05, "the pause of a double click"


def test_text_is_written_where_keys_have_its_letters_and_pasted_elsewhere(machine):
    hand = machine.hand()
    hand.perform(TypeText("a < b\n"))
    hand.perform(TypeText("grüße"))
    enter = [("keyDown", "enter"), ("keyUp", "enter")]
    assert machine.events == [[("write", "a < b"), *enter], [("paste", "grüße")]]


def test_keys_have_the_names_of_pyautogui(machine):
    machine.hand().perform(PressKeys(("super", "page_up")))
    down = [event[1] for event in machine.events[0] if event[0] == "keyDown"]
    assert down == ["winleft", "pageup"]


def test_a_drag_that_begins_at_the_pointer_asks_where_that_is(machine):
    machine.hand().perform(Drag(None, DesktopPoint(103, 104)))
    where, events = machine.asked
    assert "position" in where
    moves = [event[2:] for event in events if event[1] == "moveTo"]
    assert moves[-1] == [103, 104]
    assert moves[0][0] < 20


def test_an_action_that_is_stopped_before_it_was_sent_does_nothing(machine):
    hand = machine.hand()
    threading.Timer(0.1, machine.stop.stop, ("enough",)).start()
    with pytest.raises(StoppedError):
        hand.perform(HoldKeys(("a",), 5.0))
    assert machine.asked == []


def test_what_an_earlier_action_keeps_down_is_released_after_a_stop(machine):
    hand = machine.hand()
    hand.perform(KeyDown(("a",)))
    machine.stop.stop("enough")
    hand.close()
    assert machine.events == [[("keyDown", "a")], [("keyUp", "a")]]


def test_an_input_that_fails_there_says_why(machine):
    machine.answer |= {"returncode": 1, "error": "Traceback ...\nKeyError: 'DISPLAY'\n"}
    with pytest.raises(EnvironmentLacksError, match=r"takes no input.*KeyError: 'DISPLAY'"):
        machine.hand().perform(Click(DesktopPoint(1, 1)))


@pytest.mark.parametrize("answer", [[], "x", {"status": "error", "message": "no such program"}, {"returncode": "x"}])
def test_an_answer_in_another_form_is_no_success(answer, machine):
    machine.answer = answer
    with pytest.raises(EnvironmentLacksError):
        MachineServer(machine.stub.url).run_events([(0, "moveTo", 1, 1)])


def test_what_is_no_picture_is_told(machine):
    with pytest.raises(EnvironmentLacksError, match="no picture"):
        RemoteScreen(machine.stub.url).grab()


def test_a_long_text_is_sent_in_pieces(machine):
    machine.hand().perform(TypeText("x" * 25_000))
    assert [len(events[0][1]) for events in machine.events] == [10_000, 10_000, 5_000]


def test_a_machine_that_is_gone_is_told(machine):
    machine.stub.close()
    with pytest.raises(EnvironmentLacksError, match="does not answer"):
        RemoteDesktop(machine.stub.url, machine.stop)


@pytest.mark.parametrize(
    "url", ["localhost:5000", "ftp://localhost", "http://", "http://[::1", "http://me:secret@localhost"]
)
def test_an_address_is_refused_without_being_repeated(url):
    with pytest.raises(UsageError) as refused:
        MachineServer(url)
    assert "secret" not in str(refused.value)


def test_nothing_is_opened_by_name(machine):
    from agent.desktop.remote import _NoApplications

    with pytest.raises(ActionFailedError, match="another machine"):
        _NoApplications().open("Mousepad", machine.stop)
