"""What failing starts say, class by class, in the wordings of several versions of vLLM and of what it stands on."""

# ruff: noqa: E501  (lines of logs are as long as they are)

from dataclasses import dataclass

#: The first lines of a start, up to a stage.
STAGES: dict[str, tuple[str, ...]] = {
    "imported": ("INFO 11-21 00:24:41 [api_utils.py:347] vLLM server version 0.33.0",),
    "configured": ("INFO 11-21 00:24:42 [model.py:607] Resolved architecture: Qwen3VLForConditionalGeneration",),
    "engine": ("INFO 11-21 00:24:50 [core.py:120] Initializing a V1 LLM engine (v0.33.0) with config: model='m'",),
    "loading": ("INFO 11-21 00:25:00 [gpu_model_runner.py:5030] Starting to load model m...",),
    "loaded": ("INFO 11-21 00:25:10 [gpu_model_runner.py:5090] Model loading took 16.78 GiB memory and 9.12 seconds",),
    "profiling": (
        "INFO 11-21 00:25:11 [gpu_model_runner.py:5990] Encoder cache will be initialized with a budget of 16384 tokens,"
        " and profiled with 1 image items of the maximum feature size.",
    ),
    "kv_cache": (
        "INFO 11-21 00:25:30 [gpu_worker.py:1044] Available KV cache memory: 3.61 GiB",
        "INFO 11-21 00:25:30 [kv_cache_utils.py:1146] GPU KV cache size: 26,288 tokens,"
        " Maximum concurrency for 8,192 tokens per request: 3.21x",
    ),
    "graphs": (
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  42%|████▏     | 3/7 [00:01<00:02,  1.9it/s]",
    ),
    "listening": ("INFO 11-21 00:25:40 [api_server.py:1980] Starting vLLM server on http://127.0.0.1:8000",),
    "serving": ("INFO:     Application startup complete.",),
}
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 11.53 GiB of"
    " which 187.75 MiB is free. Including non-PyTorch memory, this process has 11.33 GiB memory in use."
)
TRACE = (
    "Traceback (most recent call last):",
    '  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/core.py", line 1299, in run_engine_core',
    "    engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)",
    "                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
)


@dataclass(frozen=True)
class Excerpt:
    """One failure: its kind, the stage it comes at, and the lines that say so."""

    kind: str
    stage: str
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.lines[0][:40]}"


def _e(kind: str, stage: str, *lines: str) -> Excerpt:
    return Excerpt(kind, stage, lines)


EXCERPTS = (
    _e("CARD", "engine", "RuntimeError: HIP error: invalid device function"),
    _e("CORRUPT", "imported", "ValueError: Couldn't instantiate the backend tokenizer from one of:"),
    # Gaudi's, made by the formats that the plugin's documentation and issues show; none of these was seen here.
    _e("HPU_OOM", "loading", "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::939524096"
       " (896)MB"),
    _e("HPU_COMPILE", "loading", "[rank0]: RuntimeError: Graph compile failed. synStatus=synStatus 26 [Generic failure]."),
    _e("HPU_WARMUP", "loading", "RuntimeError: Recompilation triggered with skip_guard_eval_unsafe stance. This usually"
       " means that you have not warmed up your model with enough inputs"),
    _e("HPU_SCALES", "loading", "AssertionError: Scaling method \"ScaleMethodString.ACT_MAXABS_PCS_POW2_WEIGHT_MAXABS_PTS_POW2"
       "_HW\" is not supported for runtime scale patching (graph recompile reduction)"),
    _e("HPU_GRAPH_OOM", "graphs", "RuntimeError: FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::939524096 (896)MB"),
    _e("NETWORK", "engine", "RuntimeError: Data processing error: CAS service error : Reqwest Error: HTTP status error"),
    _e(
        "VALUE",
        "imported",
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig",
        "gpu_memory_utilization",
        "  Input should be less than or equal to 1 [type=less_than_equal, input_value=1.2, input_type=float]",
    ),
    _e(
        "FREE_MEM",
        "engine",
        "ValueError: Free memory on device cuda:0 (7.41/14.56 GiB) on startup is less than desired GPU memory utilization"
        " (0.92, 13.4 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    ),
    _e(
        "FREE_MEM",
        "engine",
        "ValueError: Free memory on device (20.5/23.68 GiB) on startup is less than desired GPU memory utilization"
        " (0.9, 21.31 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    ),
    _e(
        "NO_KV",
        "profiling",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing"
        " the engine.",
    ),
    _e(
        "KV_SHORT",
        "profiling",
        "ValueError: To serve at least one request with the models's max seq len (262144), (28.00 GiB KV cache is needed,"
        " which is larger than the available KV cache memory (3.61 GiB). Based on the available memory, the estimated"
        " maximum model length is 33792. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when"
        " initializing the engine.",
    ),
    _e(
        "KV_SHORT",
        "profiling",
        "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV"
        " cache (11216). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the"
        " engine.",
    ),
    _e(
        "AUTOFIT_ZERO",
        "profiling",
        "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token.",
    ),
    _e("LOAD_OOM", "loading", OOM),
    _e("LOAD_OOM", "loading", f"Failed to load model - not enough GPU memory. (original error: {OOM})"),
    _e("PROFILE_OOM", "profiling", OOM),
    _e("PROFILE_OOM", "loaded", OOM.replace("torch.Out", "torch.cuda.Out")),
    _e(
        "PROFILE_OOM",
        "graphs",
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering"
        " `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
    ),
    _e("GRAPH_OOM", "graphs", "RuntimeError: CUDA error: out of memory", "CUDA kernel errors might be asynchronously"),
    _e("GRAPH_OOM", "kv_cache", "torch.AcceleratorError: CUDA error: out of memory"),
    _e("HOST_OOM", "loading", "RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate"
       " memory: you tried to allocate 1073741824 bytes. Error code 12 (Cannot allocate memory)"),
    _e("HOST_OOM", "loading", "Nov 21 00:25:02 host kernel: Out of memory: Killed process 4711 (VLLM::EngineCor)"),
    _e(
        "PROFILE_RACE",
        "profiling",
        "AssertionError: Error in memory profiling. Initial free memory 11.2 GiB, current free memory 13.9 GiB. This"
        " happens when other processes sharing the same container release GPU memory while vLLM is profiling",
    ),
    _e(
        "BF16",
        "engine",
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has"
        " compute capability 7.5. You can use float16 instead by explicitly setting the `dtype` flag in CLI",
    ),
    _e(
        "QUANT_CC",
        "imported",
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
        "  Value error, The quantization method modelopt_fp4 is not supported for the current GPU. Minimum capability:"
        " 100. Current capability: 89. [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]",
    ),
    _e("QUANT_CC", "profiling", "ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are"
       " ('fp8e4b15', 'fp8e5')"),
    _e(
        "QUANT_UNKNOWN",
        "imported",
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, Unknown quantization method: squeezellm. Must be one of ['awq', 'fp8']. [type=value_error]",
    ),
    _e(
        "QUANT_ONLINE",
        "loading",
        "ValueError: The `fp8` quantization method no longer supports online quantization. Please use `--quantization"
        " fp8_per_tensor`",
    ),
    _e(
        "TRITON_SMEM",
        "profiling",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 98304, Hardware limit: 65536."
        " Reducing block sizes or `num_stages` may help.",
    ),
    _e("PORT", "imported", "OSError: [Errno 98] Address already in use"),
    _e("PORT", "listening", "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use"),
    _e(
        "INNER_PORT",
        "engine",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port:"
        " 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
    ),
    _e("INNER_PORT", "engine", "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:29550')"),
    _e("VALUE", "engine", "ValueError: VLLM_PORT 'tcp://10.0.0.1:80' appears to be a URI. This may be caused by a Kubernetes"
       " service discovery issue"),
    _e("LOOPBACK", "engine", "RuntimeError: [enforce fail at /__w/pytorch/third_party/gloo/gloo/transport/tcp/device.cc:212]"
       " ifa != nullptr. Unable to find interface for: [127.0.0.1]"),
    _e("CORRUPT", "imported", "TypeError: Field 'hidden_size' expected int, got str (value: '256'), retrying 1 of 2"),
    _e("QUANT_CC", "loading", "ValueError: Forced NVFP4 kernel MarlinNvFp4LinearKernel is not supported: Marlin FP4 not"
       " available"),
    # Those that need a card are as the source of vLLM 0.33 words them (compressed_tensors.py, quark.py, backend.py).
    _e("QUANT_CC", "loading", "RuntimeError: Quantization scheme is not supported for the current GPU. Min capability: 80."
       " Current capability: 75."),
    _e("QUANT_CC", "loading", "RuntimeError: Quantization scheme is not supported for the current GPU. Required capability:"
       " 90. Current capability: 89."),
    _e("ATTENTION", "loading", "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig("
       "head_size=72, dtype=torch.float16). Reasons: {FLASH_ATTN: [head_size not supported]}."),
    _e("ATTENTION", "profiling", "RuntimeError: This flash attention build does not support headdim not being a multiple of"
       " 32."),
    _e("ATTENTION", "profiling", "RuntimeError: FlashAttention forward only supports head dimension at most 256"),
    _e("CORRUPT", "loading", "FileNotFoundError: Weight files referenced in index but missing: {'/m/model-00002-of-00002"
       ".safetensors'}"),
    _e("CORRUPT", "configured", "TypeError: Invalid type of HuggingFace processor. Expected type: <class 'transformers."
       "Qwen3VLProcessor'>, but found type: <class 'transformers.Qwen2TokenizerFast'>"),
    _e("FLAG", "launched", "vllm: error: unrecognized arguments: --swap-space 4"),
    _e("FLAG_VALUE", "launched", "vllm serve: error: argument --dtype: invalid choice: 'fp32' (choose from auto, half)"),
    _e("FLAG_VALUE", "launched", "api_server.py: error: argument --max-model-len: expected one argument"),
    _e(
        "MAX_LEN",
        "imported",
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, User-specified max_model_len (300000) is greater than the derived max_model_len"
        " (max_position_embeddings=262144 or model_max_length=None in model's config.json).",
    ),
    _e("REASONING_PARSER", "configured", "KeyError: \"Reasoning parser 'deepseek-r1' not found. Available parsers: qwen3\""),
    _e("REASONING_PARSER", "imported", "KeyError: 'invalid tool call parser: qwen (chose from { hermes,mistral })'"),
    _e("ATTENTION", "loading", "ValueError: Selected backend AttentionBackendEnum.FLASH_ATTN is not valid for this"
       " configuration. Reason: ['compute capability not supported']"),
    _e("ATTENTION", "profiling", "RuntimeError: FlashAttention only supports Ampere GPUs or newer."),
    _e("ATTENTION", "engine", "ValueError: Invalid value 'XFORMERS' for VLLM_ATTENTION_BACKEND. Valid options: ['FLASH_ATTN']"),
    _e("VALUE", "imported", "pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig",
       "  Value error, max_num_batched_tokens (2048) is smaller than max_model_len (8192). This effectively limits"),
    _e("VALUE", "listening", "ValueError: The supplied chat template (./none.jinja) looks like a file path, but it failed to"
       " be opened. Reason: [Errno 2] No such file or directory: './none.jinja'"),
    _e("QUANT_PREPARED", "imported", "ValueError: Cannot find the config file for awq"),
    _e("QUANT_PREPARED", "imported", "ValueError: Quantization method specified in the model config (awq) does not match"
       " the quantization method specified in the `quantization` argument (gptq)."),
    _e("QUANT_CC", "loading", "ValueError: FP8 PTPC online quant requires a kernel that honors per-token activation"
       " quantization; MarlinFP8 is W8A16 weight-only. Requires SM89+ for Cutlass FP8 or ROCm MI3xx for rowwise scaled_mm."),
    _e("QUANT_CC", "loading", "ValueError: nvfp4_per_token online quantization requires a Blackwell (SM100) GPU."),
    _e("VALUE", "imported", "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes:"
       " [torch.float16]"),
    _e("MODEL", "imported", "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-6)",
       "Repository Not Found for url: https://huggingface.co/api/models/nobody/nothing/tree/main.",
       "If you are trying to access a private or gated repo, make sure you are authenticated."),
    _e("MODEL", "imported", "ValueError: Invalid repository ID or local directory specified: '/models/none'.",
       "Please verify the following requirements:", "1. Provide a valid Hugging Face repository ID."),
    _e("MODEL", "imported", "OSError: nothing-at-all is not a local folder and is not a valid model identifier listed on"
       " 'https://huggingface.co/models'"),
    _e("OFFLINE", "imported", "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot"
       " folder for the specified revision on the local disk and outgoing traffic has been disabled."),
    _e("OFFLINE", "imported", "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/x: offline"
       " mode is enabled. To disable it, please unset the `HF_HUB_OFFLINE` environment variable."),
    _e("GATED", "imported", "OSError: You are trying to access a gated repo.", "Make sure to have access to it at"
       " https://huggingface.co/google/gemma-3-4b-it.", "401 Client Error."),
    _e("GATED", "imported", "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-6)",
       "Cannot access gated repo for url https://huggingface.co/x/y/resolve/main/config.json."),
    _e("TOKEN", "imported", "huggingface_hub.errors.HfHubHTTPError: 401 Client Error: Unauthorized for url: https://hug",
       "Invalid credentials in Authorization header"),
    _e("NETWORK", "imported", "socket.gaierror: [Errno -3] Temporary failure in name resolution",
       "OSError: We couldn't connect to 'https://huggingface.co' to load the files"),
    _e("NETWORK", "engine", "requests.exceptions.ReadTimeout: (ReadTimeoutError(\"HTTPSConnectionPool(host='huggingface.co',"
       " port=443): Read timed out. (read timeout=10)\"), '(Request ID: 1)')"),
    _e("NETWORK", "engine", "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://h"),
    _e("CORRUPT", "loading", "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"),
    _e("CORRUPT", "loading", "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file"
       " not fully covered"),
    _e("CORRUPT", "imported", "OSError: It looks like the config file at '/m/config.json' is not a valid JSON file."),
    _e("CORRUPT", "loading", "RuntimeError: Cannot find any model weights with `/models/empty`"),
    _e("CORRUPT", "configured", "OSError: Can't load image processor for '/m'. If you were trying to load it from"),
    _e("ARCH", "imported", "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
       "  Value error, Model architectures ['Qwen9VLForConditionalGeneration'] are not supported for now. Supported"
       " architectures: dict_keys(['ArceeForCausalLM'])"),
    _e("ARCH", "imported", "ValueError: Model architecture MllamaForConditionalGeneration was supported in vLLM until"
       " v0.10.2, and is not supported anymore. Please use an older version of vLLM"),
    _e("HF_VERSION", "imported", "KeyError: 'qwen3_vl'", "During handling of the above exception, another exception occurred:",
       "ValueError: The checkpoint you are trying to load has model type `qwen3_vl` but Transformers does not recognize"
       " this architecture."),
    _e("REMOTE_CODE", "imported", "ValueError: The repository x/y contains custom code which must be executed to correctly"
       " load the model.", "Please pass the argument `trust_remote_code=True` to allow custom code to be run."),
    _e("TENSOR_PARALLEL", "imported", "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
       "  Value error, Total number of attention heads (16) must be divisible by tensor parallel size (3)."),
    _e("TENSOR_PARALLEL", "loading", "AssertionError: 3420 is not divisible by 8"),
    _e("TOO_FEW_GPUS", "imported", "pydantic_core._pydantic_core.ValidationError: 1 validation error for ParallelConfig",
       "  Value error, World size (4) is larger than the number of available GPUs (2) in this node. If this is"),
    _e("TOO_FEW_GPUS", "engine", "torch.AcceleratorError: CUDA error: invalid device ordinal"),
    _e("TOO_FEW_GPUS", "engine", "ValueError: The number of required GPUs exceeds the total number of available GPUs in the"
       " placement group. world_size=4"),
    _e("NO_DEVICE", "launched", "RuntimeError: Failed to infer device type"),
    _e("NO_DEVICE", "engine", "RuntimeError: No CUDA GPUs are available"),
    _e("DRIVER", "engine", "RuntimeError: The NVIDIA driver on your system is too old (found version 12040). Please update"),
    _e("DRIVER", "launched", "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"),
    _e("DRIVER", "engine", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before"
       " calling NumCudaDevices()? Error 803: system has unsupported display driver / cuda driver combination"),
    _e("CARD", "engine", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    _e("CARD", "profiling", "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error",
       "`ptxas` stderr:", "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"),
    _e("CUDA", "graphs", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
    _e("CUDA", "profiling", "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`"),
    _e("NCCL", "engine", "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"),
    _e("NCCL", "engine", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, remote process exited"),
    _e("DISK", "engine", "OSError: [Errno 28] No space left on device"),
    _e("SHM", "engine", "RuntimeError: Insufficient space in /dev/shm for the ring buffer: 240 MiB required, 64 MiB free."
       " Increase /dev/shm (e.g. --shm-size or --ipc=host)."),
    _e("SHM", "engine", "RuntimeError: DataLoader worker (pid 12) is killed by signal: Bus error. It is possible that"
       " dataloader's workers are out of shared memory."),
    _e("PERMISSION", "engine", "PermissionError: [Errno 13] Permission denied: '/home/me/.cache/vllm/torch_compile_cache'"),
    _e("FILES", "engine", "OSError: [Errno 24] Too many open files"),
    _e("FILES", "engine", "RuntimeError: Cannot resolve 127.0.0.1 to a (local) address"),
    _e("FILES", "configured", "zmq.error.ZMQError: Too many open files"),
    _e("CORRUPT", "configured", "struct.error: unpack requires a buffer of 8 bytes"),
    _e("CORRUPT", "configured", "OSError: Can't load image processor for '/m'. If you were trying to load it from 'https://"
       "huggingface.co/models', make sure you don't have a local directory with the same name."),
    _e("IMPORT", "launched", "ImportError: /opt/v/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEab"),
    _e("IMPORT", "launched", "ModuleNotFoundError: No module named 'vllm'"),
    _e("IMPORT", "launched", "importlib.metadata.PackageNotFoundError: No package metadata was found for vllm"),
    _e("COMPILER", "profiling", "torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler. Please specify via"
       " CC environment variable or set triton.knobs.build.impl."),
    _e("COMPILER", "profiling", "/tmp/tmpx/main.c:5:10: fatal error: Python.h: No such file or directory"),
    _e("COMPILER", "profiling", "subprocess.CalledProcessError: Command '['ninja', '-v', '-C', '/home/me/.cache/flashinfer/86']'"
       " returned non-zero exit status 1."),
    _e("COMPILER", "profiling", "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"),
    _e("STALLED", "loading", "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow"
       " weight loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S)."),
    _e("STALLED", "kv_cache", "TimeoutError: RPC call to sample_tokens timed out."),
    _e("KILLED", "loading", "ERROR 11-21 00:25:02 [multiproc_executor.py:380] Worker proc VllmWorker-1 died unexpectedly"
       " (exit code: -9), shutting down executor."),
    _e("CRASHED", "loading", "Fatal Python error: Segmentation fault"),
    _e("CRASHED", "launched", "Illegal instruction (core dumped)"),
    _e("EXITED", "profiling", "RuntimeError: something that nobody has heard of"),
)  # fmt: skip


def log(excerpt: Excerpt, version: str = "0.33") -> list[str]:
    """A whole log of a start that fails so, root cause first and the engine's generic end last."""
    lines = ["/usr/lib/python3.12/site-packages/x.py:24: DeprecationWarning: old", "  warnings.warn("]
    for stage, marks in STAGES.items():
        if excerpt.stage == "launched":
            break
        lines += marks
        if stage == excerpt.stage:
            break
    if version == "0.33" and excerpt.stage not in ("launched", "imported", "configured", "listening"):
        name = "(EngineCore pid=4711) "
        lines.append(f"{name}ERROR 11-21 00:25:33 [core.py:1584] EngineCore failed to start.")
        lines += [f"{name}ERROR 11-21 00:25:33 [core.py:1584] {line}" for line in (*TRACE, *excerpt.lines)]
        lines += [f"{name}Process EngineCore:", *(f"{name}{line}" for line in (*TRACE, *excerpt.lines))]
        name = "(APIServer pid=4700) "
        lines += [f"{name}{line}" for line in TRACE]
        end = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
        lines.append(name + end)
    else:
        lines += [*TRACE, *excerpt.lines]
    return lines


def until(stage: str) -> list[str]:
    """The log of a start up to and with a stage."""
    lines: list[str] = []
    for name, marks in STAGES.items():
        lines += marks
        if name == stage:
            return lines
    raise KeyError(stage)
