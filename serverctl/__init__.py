"""The server controller: plans, starts, watches, repairs and explains a local vLLM.

`hardware`, `models`, `plan`, `vllm` and `diagnose` decide what to start and explain failures; `process` starts and
stops servers. This package never imports `agent`. `agent` imports only `endpoint`: a ready server and its limits.
"""
