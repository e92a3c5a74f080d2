"""Small wheels to install without a network: a vLLM that has nothing but a parser, and the torch it asks."""

import zipfile
from pathlib import Path

_PARSER = """
def make_arg_parser(parser):
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--max-model-len", type=int)
    return parser
"""

_FILES = {
    "vllm/__init__.py": '__version__ = "{version}"\n',
    "vllm/platforms/__init__.py": "class P:\n    def is_out_of_tree(self): return False\ncurrent_platform = P()\n",
    "vllm/platforms/cpu.py": "class CpuPlatform: pass\n",
    "vllm/utils/__init__.py": "",
    "vllm/utils/argparse_utils.py": "from argparse import ArgumentParser as FlexibleArgumentParser\n",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/common/__init__.py": "",
    "vllm/entrypoints/common/cli_args.py": _PARSER,
}
_TORCH = {"torch/__init__.py": '__version__ = "2.0"\nclass version:\n    cuda = None\n'}


def vllm_wheel(folder: Path, version: str, broken: bool = False) -> Path:
    """A vLLM of some version; a broken one cannot be imported."""
    files = {name: text.replace("{version}", version) for name, text in _FILES.items()}
    if broken:
        files["vllm/__init__.py"] = "import a_library_that_is_missing\n"
    torch_wheel(folder)
    return _wheel(folder, "vllm", version, files, "Requires-Dist: torch==2.0\n")


def torch_wheel(folder: Path) -> Path:
    """What the fake vLLM requires."""
    return _wheel(folder, "torch", "2.0", _TORCH)


def _wheel(folder: Path, name: str, version: str, files: dict[str, str], extra: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    everything = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extra}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in everything) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in everything.items():
            wheel.writestr(file, text)
        wheel.writestr(f"{info}/RECORD", record)
    return path
