"""The background process of one server: takes the lock, runs the owner, and records its own errors in the state."""

import asyncio
import contextlib
import os
import signal
import time
import traceback
from collections.abc import Callable

from foundation.errors import ExitStatus, MaiError
from foundation.files import write_atomically
from foundation.printing import remark
from foundation.processes import identity_of
from serverctl.process.control import ALREADY_RUNNING
from serverctl.process.request import ServerRequest, read_request
from serverctl.process.state import Folder, State, cannot_write, failure_json
from serverctl.process.supervisor.lifecycle import Owner


def supervise(
    folder: Folder,
    request: ServerRequest | None = None,
    echo: Callable[[str], None] | None = None,
    changed: Callable[[State], None] = lambda _: None,
) -> int:
    """Run a server's owner in this process, and return its exit status.

    Without `request`, read the request file that the launching process wrote while it held `launching`.
    """
    owner: Owner | None = None
    with contextlib.ExitStack() as stack:
        try:
            with contextlib.nullcontext() if request is None else folder.launching():
                lock = folder.take()
                if lock is None:
                    return ALREADY_RUNNING
                stack.enter_context(lock)
                if request is not None:
                    write_atomically(folder.request_file, request.to_json())
                owner = Owner(folder, request or read_request(folder.request_file), echo, changed)
            _raise_file_limit()
            return asyncio.run(_run(owner, in_foreground=request is not None))
        except OSError as error:
            write_error = cannot_write(folder.path, error)
            _leave(folder, owner, str(write_error))
            return write_error.exit_status
        except MaiError as error:
            _leave(folder, owner, str(error))
            return error.exit_status
        except Exception:
            text = traceback.format_exc()
            remark(*text.splitlines())
            message = f"mai-server itself failed: {text.strip().splitlines()[-1]}."
            _leave(folder, owner, f"{message} The whole is in {folder.supervisor_log}.")
            return ExitStatus.NOT_DONE


async def _run(owner: Owner, in_foreground: bool) -> int:
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()

    def interrupt() -> None:
        interrupted.set()
        owner.stop()

    loop.add_signal_handler(signal.SIGTERM, owner.stop)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    # When the terminal closes, only a foreground server without nohup stops.
    if in_foreground and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, owner.stop)
    else:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    status = await owner.run()
    return ExitStatus.STOPPED if interrupted.is_set() and status == ExitStatus.DONE else status


def _leave(folder: Folder, owner: Owner | None, sentence: str) -> None:
    """Write the final state after an error of the supervisor itself."""
    state = owner.state if owner else State(name=folder.name, supervisor=identity_of(os.getpid()))
    state.phase = "failed"
    state.note(time.time(), sentence)
    state.failure = failure_json("CONTROLLER", sentence, remedy="`mai-server up` tries again.")
    with contextlib.suppress(OSError):
        folder.write(state)


def _raise_file_limit() -> None:
    """Raise the limit of open files to the hard limit: vLLM needs many."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
