"""The server controller: plans, starts, watches, repairs and explains a local vLLM.

`hardware`, `models`, `plan`, `vllm` and `diagnose` decide what to start and explain failures; `process` starts and
stops servers. It never imports `agent`, which uses only `endpoint`: a ready server with its limits.
"""
