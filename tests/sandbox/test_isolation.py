"""What programs in a sandbox can reach, tried from inside as an attacker would; and what is said where all is open."""

import os
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from agent.commands import doctor
from agent.core.geometry import Size
from agent.desktop.linux.bus import age
from agent.desktop.programs import host_pid, marked
from agent.sandbox import desktop, isolation
from agent.sandbox import start as starting
from agent.sandbox.desktop import SandboxSpec, environment_of, reap_sandboxes, start_sandbox, stop_sandbox
from agent.sandbox.isolation import open_sockets, why_not
from agent.sandbox.start import SOCKETS
from foundation.errors import EnvironmentLacksError

#: What this machine can: everything below is tried where it can isolate, and the honest word for it where it cannot.
LACK = why_not("none")


def start(**spec):
    return start_sandbox(SandboxSpec(Size(800, 600), session="bare", **spec))


def where_isolated(test):
    """Collect a test only where this machine can isolate."""
    return test if LACK is None else None


@pytest.fixture(scope="module")
def kept_in(own_temporary_folder):
    """A sandbox without network."""
    with pytest.MonkeyPatch.context() as kept:
        for name in ("DISPLAY", "XAUTHORITY"):
            kept.setenv(name, os.environ.get(name, ""))
        sandbox = start(network="none")
    yield sandbox
    sandbox.close()


def python(sandbox, code, *arguments):
    """A Python of the system, inside; what it prints, or its error."""
    program = sandbox.run(isolation.python_inside()[0][0], "-I", "-S", "-c", code, *arguments)
    return program.stdout.strip() or program.stderr.strip().splitlines()[-1]


READ = "import sys; print(open(sys.argv[1]).read())"


@where_isolated
def test_files_of_the_person_are_not_there(kept_in, tmp_path):
    secret = tmp_path / "id_ed25519"
    secret.write_text("PRIVATE KEY")
    assert "FileNotFoundError" in python(kept_in, READ, str(secret))
    for path in (secret, Path.home(), Path.home() / ".ssh", Path(__file__), Path("/var/log"), Path("/run/dbus")):
        listed = kept_in.run("ls", "-A", str(path))
        assert listed.returncode != 0 or set(listed.stdout.split()) <= {".pyenv", ".local", ".cache"}, path
    assert kept_in.run("sh", "-c", f"echo pwned > {tmp_path}/new").returncode != 0
    assert not (tmp_path / "new").exists()


@where_isolated
def test_the_system_can_be_read_and_not_written(kept_in):
    assert kept_in.run("test", "-r", "/etc/hostname").returncode == 0
    for place in ("/etc/motd", "/usr/bin/new", "/new", "/opt/new", "/sys/new"):
        assert kept_in.run("sh", "-c", f"echo x > {place}").returncode != 0, place
    assert not Path("/usr/bin/new").exists()
    assert kept_in.run("cat", "/etc/shadow").stdout == ""


@where_isolated
def test_the_kernel_takes_no_orders_from_inside(kept_in):
    writable = kept_in.run("find", "/proc/sys", "-type", "f", "-writable").stdout.splitlines()
    assert writable == []  # core_pattern names a program that the kernel starts outside, as root
    assert kept_in.run("mount", "-o", "remount,rw,bind", "/usr").returncode != 0


@where_isolated
def test_its_own_files_are_at_the_same_place_inside_and_outside(kept_in):
    home = Path(kept_in.environ["HOME"])
    kept_in.run("sh", "-c", "echo made inside > ~/Documents/note.txt")
    assert (home / "Documents/note.txt").read_text() == "made inside\n"
    (home / "Documents/other.txt").write_text("made outside")
    assert kept_in.run("cat", str(home / "Documents/other.txt")).stdout == "made outside"


@where_isolated
def test_what_says_how_to_enter_it_cannot_be_forged_from_inside(kept_in):
    for name in ("environment", "state.json", "lock", "cookie"):
        before = (kept_in.folder / name).read_bytes()
        kept_in.run("sh", "-c", f"echo 'touch /tmp/pwned' > {kept_in.folder}/{name}")
        assert (kept_in.folder / name).read_bytes() == before, name
    assert kept_in.run("test", "-e", f"{kept_in.folder}/door").returncode != 0


@where_isolated
def test_temporary_files_are_its_own(kept_in):
    mark = Path(f"/tmp/mai-agent-test-{os.getpid()}")
    mark.write_text("outside")
    try:
        assert kept_in.run("cat", str(mark)).returncode != 0
        kept_in.run("sh", "-c", f"echo inside > {mark}")
        assert mark.read_text() == "outside"
    finally:
        mark.unlink()


@where_isolated
def test_other_processes_can_be_neither_seen_nor_ended():
    sandbox = start(network="none")
    victim = subprocess.Popen(["sleep", "300"], env={"SECRET": "of-the-person"})
    try:
        seen = sandbox.run("sh", "-c", "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'").stdout
        assert "of-the-person" not in seen
        assert "pytest" not in seen
        assert sandbox.run("sh", "-c", f"kill -9 {victim.pid}").returncode != 0
        assert sandbox.run("readlink", "/proc/1/root", "/proc/2/root").stdout.split() in ([], ["/", "/"])
        with suppress(OSError):  # ends the sandbox itself, perhaps before it is told that this was started
            sandbox.run("sh", "-c", "kill -9 -1")
        assert victim.poll() is None
        with pytest.raises(OSError):
            sandbox.start("true")
    finally:
        victim.kill()
        victim.wait()
        sandbox.close()


@where_isolated
def test_servers_and_sockets_of_the_machine_are_out_of_reach(kept_in):
    connect = (
        "import socket, sys\n"
        "one = socket.socket(socket.AF_UNIX if sys.argv[1] == 'unix' else socket.AF_INET)\n"
        "where = '\\0' + sys.argv[2] if sys.argv[1] == 'unix' else ('127.0.0.1', int(sys.argv[2]))\n"
        "one.connect(where); print('connected')"
    )
    name = f"mai-agent-test-{os.getpid()}"
    with closing(socket.create_server(("127.0.0.1", 0))) as server, closing(socket.socket(socket.AF_UNIX)) as bus:
        bus.bind(f"\0{name}")
        bus.listen()
        assert "Refused" in python(kept_in, connect, "inet", str(server.getsockname()[1]))
        assert "Refused" in python(kept_in, connect, "unix", name)
    assert kept_in.run("ls", str(SOCKETS)).stdout.split() == [f"X{kept_in.environ['DISPLAY'][1:]}"]


@where_isolated
def test_only_its_own_display_is_reached_and_that_from_both_sides(kept_in):
    assert "800x600" in kept_in.run("xdpyinfo").stdout
    outside = subprocess.run(["xdpyinfo"], env=kept_in.environ, capture_output=True, text=True, timeout=20)
    assert "800x600" in outside.stdout
    assert kept_in.run("env", "DISPLAY=:0", "xdpyinfo").returncode != 0


@where_isolated
def test_its_buses_answer_on_both_sides(kept_in):
    ask = ["gdbus", "call", "--session", "--dest", "org.a11y.Bus", "--object-path", "/org/a11y/bus", "--method",
           "org.a11y.Bus.GetAddress"]  # fmt: skip
    inside = kept_in.run(*ask).stdout
    outside = subprocess.run(ask, env=kept_in.environ, capture_output=True, text=True, timeout=20).stdout
    assert str(kept_in.folder) in inside
    assert inside == outside


@where_isolated
def test_shared_memory_of_others_is_not_there(kept_in):
    made = subprocess.run(["ipcmk", "-M", "4096"], capture_output=True, text=True, timeout=20).stdout
    number = made.strip().rpartition(" ")[2]
    try:
        assert number.isdigit()
        assert "not found" in kept_in.run("ipcs", "-m", "-i", number).stderr
    finally:
        subprocess.run(["ipcrm", "-m", number], timeout=20)


@where_isolated
def test_nobody_gets_more_rights_inside(kept_in):
    status = kept_in.run("cat", "/proc/self/status").stdout
    rights = int(status.partition("CapEff:")[2].split()[0], 16)
    assert rights & ~0b1100_0001 == 0  # root may become others, of whom there is nobody in there
    assert "NoNewPrivs:\t1" in status


def test_with_the_network_of_the_machine_files_are_out_of_reach_too(tmp_path):
    if why_not("host") is not None:
        return
    sandbox = start(network="host")
    try:
        (tmp_path / "secret").write_text("secret")
        assert "FileNotFoundError" in python(sandbox, READ, str(tmp_path / "secret"))
        with closing(socket.create_server(("127.0.0.1", 0))) as server:
            code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]})); print('yes')"
            assert python(sandbox, code) == "yes"
        with closing(socket.socket(socket.AF_UNIX)) as bus:
            bus.bind(f"\0mai-agent-test-{os.getpid()}")
            bus.listen()
            code = f"import socket; socket.socket(1).connect('\\0mai-agent-test-{os.getpid()}'); print('yes')"
            assert (python(sandbox, code) == "yes") == bool(open_sockets())
    finally:
        sandbox.close()


OWNER = """
import sys, time
from agent.desktop.programs import host_pid
from agent.desktop.linux.bus import age
from agent.core.geometry import Size
from agent.sandbox.desktop import *
sandbox = start_sandbox(SandboxSpec(Size(800, 600), session="bare", keep=sys.argv[1] == "keep"))
sandbox.start("sh", "-c", "exec env -i sleep 1234")
print(sandbox.name, flush=True)
time.sleep(60)
"""


def owned(keep):
    """A sandbox whose owner has been killed, with a program in it that does not carry its mark."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", OWNER, "keep" if keep else "-"]
    owner = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    name = owner.stdout.readline().strip()
    owner.kill()
    owner.communicate()
    return name


def sleeping():
    return [str(one.pid) for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "1234"]]


def gone(numbers, seconds=10):
    until = time.monotonic() + seconds
    while any(Path(f"/proc/{number}/cmdline").exists() for number in numbers) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(Path(f"/proc/{number}/cmdline").exists() for number in numbers)


def test_a_killed_owner_takes_along_also_what_has_hidden_its_mark():
    before = sleeping()
    name = owned(keep=False)
    if why_not("host") is None:
        assert gone(set(sleeping()) - set(before))
    assert name in reap_sandboxes()
    assert marked(name) == []
    assert not any(link.is_symlink() and name in str(link.readlink()) for link in SOCKETS.iterdir())
    for number in set(sleeping()) - set(before):  # not isolated: nothing tells whose it is
        os.kill(int(number), 9)


def test_a_kept_one_is_entered_and_ended_whole():
    before = sleeping()
    name = owned(keep=True)
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "agent", "sandbox", "enter", name, "sh", "-c", "cat; echo $HOME; exit 7"]
    done = subprocess.run(command, cwd=root, input="from outside\n", capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines() == ["from outside", environment_of(name)["HOME"]]
    assert done.returncode == 7
    stop_sandbox(name)
    assert marked(name) == []
    if why_not("host") is None:
        assert gone(set(sleeping()) - set(before))
    for number in set(sleeping()) - set(before):
        os.kill(int(number), 9)


# Where nothing can be isolated


@pytest.fixture
def no_bubblewrap(monkeypatch):
    """A system without it."""
    which = isolation.shutil.which
    monkeypatch.setattr(isolation.shutil, "which", lambda program: None if program == "bwrap" else which(program))
    isolation._tried.cache_clear()
    yield
    isolation._tried.cache_clear()


@pytest.fixture
def forbidding(monkeypatch, tmp_path):
    """A system that forbids user namespaces, as bubblewrap says it."""
    script = tmp_path / "bin/bwrap"
    script.parent.mkdir()
    said = "bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged"
    script.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    isolation._tried.cache_clear()
    yield
    isolation._tried.cache_clear()


def test_without_bubblewrap_a_sandbox_says_so_at_its_start_and_works(no_bubblewrap):
    told = []
    sandbox = start_sandbox(SandboxSpec(Size(800, 600), session="bare"), told.append)
    try:
        [said] = [one for one in told if "can reach your files" in one]
        assert "apt-get install --no-install-recommends bubblewrap" in said
        assert "800x600" in sandbox.run("xdpyinfo").stdout
        assert sandbox.run("cat", str(Path(__file__))).stdout
        assert len(marked(sandbox.name)) >= 4
    finally:
        sandbox.close()
    assert marked(sandbox.name) == []


def test_a_system_that_forbids_it_is_quoted(forbidding):
    told = []
    assert desktop._network(None, told.append) is None
    assert "can reach your files" in told[0]
    assert "No permissions to create a new namespace" in told[0]


def test_a_sandbox_without_network_is_refused_where_it_cannot_be(no_bubblewrap):
    with pytest.raises(EnvironmentLacksError, match=r"without network .*bubblewrap is not installed"):
        start(network="none")


def test_the_doctor_says_whether_files_are_out_of_reach(no_bubblewrap):
    finding = doctor._isolation()
    assert not finding.ok
    assert "can reach your files" in finding.detail
    assert "install" in finding.detail


def test_the_doctor_says_it_too_where_all_is_well(monkeypatch):
    monkeypatch.setattr(isolation, "why_not", lambda _: None)
    finding = doctor._isolation()
    assert finding.ok
    assert "cannot reach your files" in finding.detail


def test_a_linux_that_shares_sockets_without_a_file_is_told_of(monkeypatch):
    monkeypatch.setattr(desktop, "why_not", lambda *_, **__: None)
    monkeypatch.setattr(desktop, "open_sockets", lambda: "Sockets are shared.")
    told = []
    assert desktop._network(None, told.append) == "host"
    assert told == ["Sockets are shared."]
    assert desktop._network("none", told.append) == "none"
    assert len(told) == 1


def test_a_program_inside_is_known_outside_by_another_number():
    sandbox = start()
    try:
        inside, end = sandbox.start("sleep", "1234").pid, time.monotonic() + 10
        while (number := host_pid(inside, sandbox.environ)) == inside:  # not yet executed: it has no mark
            assert time.monotonic() < end
            time.sleep(0.02)
        assert Path(f"/proc/{number}/cmdline").read_bytes() == b"sleep\x001234\x00"
        assert age(sandbox.environ) < 60  # of its bus, which tells its own number too
    finally:
        sandbox.close()


def test_links_to_displays_that_are_gone_are_removed_and_no_others(monkeypatch, tmp_path):
    monkeypatch.setattr(starting, "SOCKETS", tmp_path)
    mine, other = tmp_path / "mai-agent-sandbox-a", tmp_path / "mai-agent-sandbox-b"
    (other / "tmp/.X11-unix").mkdir(parents=True)
    lost = tmp_path / "mai-agent-sandbox-c/tmp/.X11-unix/X3"
    for number, target in enumerate((mine / "tmp" / tmp_path.name / "X1", other / "tmp/.X11-unix/X2", lost), 1):
        (tmp_path / f"X{number}").symlink_to(target)
    (tmp_path / "X4").touch()
    (tmp_path / "X5").symlink_to("/nowhere/else")
    starting.release(mine)
    assert sorted(path.name for path in tmp_path.glob("X*")) == ["X2", "X4", "X5"]
