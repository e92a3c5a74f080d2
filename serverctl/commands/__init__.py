"""The subcommands of `mai-server`: functions from arguments to an exit status."""

#: Subcommands, and what they do in a few words.
COMMANDS = {
    "plan": "what would be started on this machine (or another), and why",
    "install": "make an environment with the right vLLM for this machine",
    "up": "start a server and wait until it answers",
    "status": "what a server is doing: stage, memory, load, cache hits, latency",
    "watch": "the same, again every second (status --watch)",
    "check": "the checklist of a server that goes into production, answered point by point",
    "logs": "a server's log",
    "down": "stop a server and everything it started",
    "boot": "start the last server at boot, or stop doing so",
    "models": "the models on this machine: list, pull, rm",
    "doctor": "say what this machine has and lacks for serving",
    "diagnose": "explain a vLLM log: what failed, why, what to do",
    "capabilities": "the flags of a vLLM, and the differences from the release that plans know",
    "bench": "measure latency and throughput with screenshots",
    "tune": "read a server's own numbers and say what to change",
    "export": "systemd unit, compose file, Kubernetes manifest, script, notebook, Prometheus files",
    "completion": "print a shell completion script, or the man page",
    "batch": "many screenshots and instructions from a file, answers into a file",
}

#: The commands by subpackage. A command is the function `main` of the module with its name.
_ROOMS = {
    "plans": ("plan", "export", "capabilities"),
    "machine": ("install", "models", "doctor"),
    "servers": ("up", "status", "check", "logs", "down", "boot", "diagnose"),
    "load": ("bench", "tune", "batch"),
}

#: Where each subcommand is, as `run_command` takes it.
MODULES = {
    **{name: f"serverctl.commands.{room}.{name}" for room, names in _ROOMS.items() for name in names},
    "watch": "serverctl.commands.servers.status:watch_main",
    "completion": "serverctl.cli:completion_main",
}
