"""Only one module writes to the terminal: a print beside it would let foreign text past the gate."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Where the streams are named, and why that is right.
ALLOWED = {
    "foundation/printing.py": "the door itself",
    "foundation/rich_console.py": "Rich behind the gate",
    "agent/tui/pictures/terminal.py": "asks the terminal for the size of its cells, and for kitty's images",
    "foundation/stray_output.py": "keeps what others print away",
    "serverctl/vllm/parser_dump.py": "runs in vLLM's environment; its output is read by us",
    "serverctl/vllm/render_template.py": "runs in vLLM's environment; its output is read by us",
    "serverctl/process/supervisor/guardian.py": "its standard error is the server's log",
    "agent/evals/tasks/tree_reader.py": "runs in the system's Python; its output is read by us",
    "agent/desktop/self_test/window_program.py": "runs in the system's Python; its output is read by us",
    "agent/desktop/portal/gstreamer_process.py": "runs in the system's Python; its output is frames, read by us",
}
#: Functions that print by themselves.
PRINTERS = {"print", "input", "print_exc", "print_exception", "print_stack", "print_tb", "pprint", "print_usage"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}


def bypasses(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    guards = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    only_types = {line.lineno for guard in guards for line in guard.body}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in PRINTERS:
                yield f"{node.lineno}: {name}()"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="traceback"), attr=name)) if name in PRINTERS:
                yield f"{node.lineno}: traceback.{name}()"
            case ast.Attribute(value=ast.Name(id="sys"), attr=name) if name in STREAMS:
                yield f"{node.lineno}: sys.{name}"
            case ast.ImportFrom(module="sys", names=names) if {one.name for one in names} & STREAMS:
                yield f"{node.lineno}: a stream from sys"
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="os"), attr="write"), args=[ast.Constant(value=1 | 2), *_]
            ):
                yield f"{node.lineno}: os.write()"
            case ast.ImportFrom(module="rich.console", names=names) if any(one.name == "Console" for one in names):
                if node.lineno not in only_types:
                    yield f"{node.lineno}: a console of its own"
            case ast.Call(func=ast.Attribute(attr="ArgumentParser")):
                yield f"{node.lineno}: a parser of its own"
            case ast.Call(func=ast.Attribute(attr="from_markup")):
                yield f"{node.lineno}: markup"
            case ast.keyword(arg="markup", value=ast.Constant(value=True)):
                yield f"{node.value.lineno}: markup"


def test_nothing_prints_but_the_door() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{where}"
        for room in ("agent", "serverctl", "foundation")
        for path in sorted((ROOT / room).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in ALLOWED
        for where in bypasses(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_print_would_be_found() -> None:
    hidden = "import sys\nprint('x')\nsys.stderr.write('y')\nfrom rich.console import Console\ninput()\n"
    assert len(list(bypasses(hidden))) == 4
