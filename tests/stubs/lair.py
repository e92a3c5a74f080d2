"""A real desktop on which a model does what it should not, with a person who answers every question the same."""

import asyncio
import subprocess
import time
from unittest import mock

from stubs.endpoint import DONE, FakeEndpoint, say

from agent.desktop.trees import bus, elements
from agent.desktop.x11.desktop import X11Desktop
from agent.desktop.x11.windows import X11Windows
from agent.events.run_events import ApprovalAsked, Warned
from agent.model.endpoint import Endpoint
from agent.model.engines import Engine
from agent.run.models.settings import RunSettings
from agent.run.session import Request, run
from agent.safety.policy import Approval, Policy
from agent.safety.stop import StopSwitch
from foundation.endpoints import normalize_url


class Lair:
    """A desktop, and runs on it in this process.

    Its runs wait long for the accessibility trees: on a loaded machine a late answer is a reason to ask, too, and these
    tests are about all the other reasons.
    """

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.home = sandbox.environ["HOME"]
        self.events = []  # of the last run

    def shows(self, command, app):
        """Start a program and wait for its window."""
        subprocess.Popen(command, env=self.sandbox.environ, start_new_session=True)
        windows = X11Windows()
        deadline = time.monotonic() + 20
        while (now := windows.active()) is None or now.app.casefold() != app.casefold():
            assert time.monotonic() < deadline, f"{app} did not come up"
            time.sleep(0.05)
        windows.close()
        time.sleep(0.5)

    def run(self, steps, *, allowed, always=False, open_desktop=X11Desktop, said=None, sentence="do it"):
        """The questions that a person was asked, who answers all of them the same, and what they were warned of."""
        self.events = events = []

        class Someone:
            async def approve(self, action, question):
                allows = allowed(question) if callable(allowed) else allowed
                return Approval(allowed=allows, by="you", always=always)

            async def ask(self, question):
                return None

        def receive(event):
            events.append(event)
            if said is not None:
                said(event)

        async def follow(endpoint):
            engine = Engine("endpoint", Endpoint(normalize_url(endpoint.url), "", "MAI-UI-8B"))
            request = Request(
                RunSettings(sentence), {"actor": engine}, Policy.load("risky"), environ=self.sandbox.environ,
                open_desktop=open_desktop, sandbox=True,
            )  # fmt: skip
            await run(request, Someone(), StopSwitch(), receive)

        patient = bus.Limits(silence=20.0, total=20.0, working=20.0)
        with (
            mock.patch.object(elements, "_LIMITS", patient),
            mock.patch.object(elements, "_AT", 20.0),
            FakeEndpoint([say(step) for step in [*steps, DONE]]) as endpoint,
        ):
            asyncio.run(follow(endpoint))
        questions = [event.reason for event in events if isinstance(event, ApprovalAsked)]
        return questions, [event.message for event in events if isinstance(event, Warned)]
