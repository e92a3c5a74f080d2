"""Runs the application, and prints the outcome on the ordinary terminal."""

from agent.options import RunOptions
from agent.safety.stop import StopSwitch, stop_signals
from foundation.errors import ExitStatus
from foundation.printing import remark
from foundation.stray_output import sitting_log, stray_output_kept


def run_application(options: RunOptions) -> int:
    """Run the application until the person leaves. Return the exit status of the last run."""
    with stray_output_kept():
        return _run(options)


def _run(options: RunOptions) -> int:
    from agent.tui.app import MaiApp
    from agent.tui.pictures.picture import ask_terminal

    ask_terminal(options.settings.get("images"))
    app = MaiApp(options)
    stop = StopSwitch()

    def stopped() -> None:
        app.conductor.stop(stop.reason)
        app.leave_from_signal()

    stop.on_stop(stopped)
    with stop_signals(stop):
        left = app.run()
        app.conductor.end()
        app.close_page()
    view = app.last_view
    if view is not None:
        remark(f"{view.title}: {app.conductor.message or view.stage}")
        if view.bundle is not None:
            remark(f"recorded in {view.bundle}")
    if app.return_code and left is None and not stop.stopped:
        remark(f"The application made a mistake itself. Please report it. The details are in {sitting_log()}.")
        return ExitStatus.NOT_DONE
    if stop.stopped:
        return ExitStatus.STOPPED
    status = app.conductor.status if left is None else left
    return ExitStatus.DONE if status is None else status
