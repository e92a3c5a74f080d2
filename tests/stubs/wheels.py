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
    "vllm/platforms/__init__.py": (
        "class P:\n    def is_out_of_tree(self): return False\n    def import_kernels(self): pass\n"
        "current_platform = P()\n"
    ),
    "vllm/platforms/cpu.py": "class CpuPlatform: pass\n",
    "vllm/utils/__init__.py": "",
    "vllm/utils/argparse_utils.py": "from argparse import ArgumentParser as FlexibleArgumentParser\n",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/openai/__init__.py": "",
    "vllm/entrypoints/openai/api_server.py": "",
    "vllm/entrypoints/common/__init__.py": "",
    "vllm/entrypoints/common/cli_args.py": _PARSER,
}
_TORCH = {
    "torch/__init__.py": (
        '__version__ = "2.0"\nclass version:\n    cuda = None\nclass ops:\n    class _C:\n        rms_norm = 1\n'
    )
}


def vllm_wheel(folder: Path, version: str, broken: bool = False, requires: str = "Requires-Dist: torch==2.0\n") -> Path:
    """A vLLM of some version; a broken one cannot be imported."""
    files = {name: text.replace("{version}", version) for name, text in _FILES.items()}
    if broken:
        files["vllm/__init__.py"] = "import a_library_that_is_missing\n"
    torch_wheel(folder)
    return _wheel(folder, "vllm", version, files, requires)


def torch_wheel(folder: Path) -> Path:
    """What the fake vLLM requires."""
    return _wheel(folder, "torch", "2.0", _TORCH)


def torchvision_wheel(folder: Path) -> Path:
    """One that was built for CUDA: it cannot be imported before somebody has declared the operators it lacks."""
    said = 'raise RuntimeError("operator torchvision::nms does not exist")'
    files = {"torchvision/__init__.py": f"import torch\nif len(torch.library.declared) < 2:\n    {said}\n"}
    torch = """
class library:
    declared = []
    class Library:
        made = 0
        def __init__(self, namespace, kind):
            type(self).made += 1
            if self.made > 1:
                raise RuntimeError("Only a single TORCH_LIBRARY can be used to register the namespace torchvision")
        def define(self, schema): library.declared.append(schema)
"""
    _wheel(folder, "torch", "2.0", {"torch/__init__.py": _TORCH["torch/__init__.py"] + torch})
    return _wheel(folder, "torchvision", "1.0", files)


def uv_wheel(folder: Path) -> Path:
    """A uv that finds a torch where pip finds none: it only makes the folder that says so."""
    script = (
        "#!/bin/sh\n"
        'while [ "$1" != --python ]; do shift; done; python=$2\n'
        'site=$("$python" -c "import sysconfig; print(sysconfig.get_path(\'purelib\'))")\n'
        'mkdir -p "$site/torch" && printf "%s" "$TORCH" >"$site/torch/__init__.py"; echo "$@" >"$site/found-by-uv"\n'
    ).replace('"$TORCH"', f"'{_TORCH['torch/__init__.py']}'")
    return _wheel(folder, "uv", "0.1", {"uv-0.1.data/scripts/uv": script})


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
            entry = zipfile.ZipInfo(file)
            entry.external_attr = 0o100755 << 16  # pip makes programs of a wheel's scripts only where they are some
            wheel.writestr(entry, text)
        wheel.writestr(f"{info}/RECORD", record)
    return path
