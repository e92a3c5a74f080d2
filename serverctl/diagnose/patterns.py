"""How each failure shows in a log: texts of vLLM 0.8 to 0.33, torch, Triton, NCCL, the hub's client and the driver.

The first class that matches a text wins, so causes come before what follows from them. `SURE` texts are causes wherever
they stand; `LIKELY` ones may also be a side note of another failure, and count only where no sure one is found.
"""

import re
from collections.abc import Iterable

from serverctl.diagnose.failures import Kind

#: A class, and the texts that show it.
Pattern = tuple[Kind, re.Pattern[str]]


def _table(*rows: tuple[Kind, str, *tuple[str, ...]]) -> tuple[Pattern, ...]:
    return tuple((kind, re.compile("|".join(texts), re.DOTALL)) for kind, *texts in rows)


SURE = _table(
    # Memory
    (
        Kind.FREE_MEM,
        r"Free memory on device .{0,80}?GiB\) on startup is less than (?:desired GPU memory util|the engine's)",
        r"Available memory on node \d+ \([\d.]+/[\d.]+ GiB\) on startup is less than desired",
    ),
    (
        Kind.NO_KV,
        r"No available memory for the cache blocks",
        r"on kv cache allocation is less than requested memory for kv \(-",
    ),
    (Kind.FREE_MEM, r"Available memory on node \d+ .{0,60}on kv cache allocation is less than requested memory for kv"),
    (
        Kind.KV_SHORT,
        r"To serve at least one request with the models?['’]s max seq len",
        r"max seq len \(\d+\) is larger than the maximum number of tokens that can be stored in KV cache",
    ),
    (Kind.AUTOFIT_ZERO, r"Cannot auto-fit max_model_len"),
    (Kind.PROFILE_RACE, r"Error in memory profiling\. Initial free memory"),
    (
        Kind.TRITON_SMEM,
        r"triton\.runtime\.errors\.OutOfResources",
        r"out of resources?: (?:shared memory|threads|registers|triton_)",
    ),
    # The card
    (Kind.BF16, r"Bfloat16 is only supported on GPUs with compute capability of at least 8\.0"),
    (
        Kind.CARD,
        r"no kernel image is available|HIP error: invalid device function",
        r"device kernel image is invalid",
        r"ptxas fatal\s*: .{0,40}is not defined for option 'gpu-name'",
        r"Unsupported gpu architecture 'compute_\d+",
        r"PTX \.version .{0,60}does not support \.target",
        r"No supported CUDA architectures found for major versions",
    ),
    (
        Kind.DRIVER,
        r"NVIDIA driver on your system is too old",
        r"CUDA driver version is insufficient for CUDA runtime",
        r"unsupported display driver / cuda driver combination",
        r"Driver/library version mismatch|NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        r"PTX was compiled with an unsupported toolchain",
        r"forward compatibility was attempted on non supported HW",
        r"Error 802: system not yet initialized",
        r"nvidia-container-cli: initialization error",
    ),
    (
        Kind.NO_DEVICE,
        r"Failed to infer device type",
        r"No CUDA GPUs are available|no CUDA-capable device is detected|No HIP GPUs are available",
        r"could not select device driver .{0,40}gpu",
        r"Torch not compiled with CUDA enabled|Device acquire failed",
    ),
    (
        Kind.TOO_FEW_GPUS,
        r"World size \(\d+\) is larger than the number of\s+available GPUs",
        r"CUDA error: invalid device ordinal",
        r"Requested \d+ GPUs?, but only \d+",
        r"--device-ids provides \d+ devices",
        r"Invalid device id|device >= 0 && device < num_gpus",
        r"required GPUs exceeds the total number of available GPUs",
        r"current node does not have enough GPUs|Current node has no GPU available",
        r"Not enough resources to allocate \d+",
    ),
    # Settings
    (Kind.QUANT_ONLINE, r"The `fp8` quantization method no longer supports online"),
    (
        Kind.QUANT_CC,
        r"is not supported for the current GPU\.\s+Minimum\s+capability",
        r"fp8e4nv not supported in this architecture",
        r"currently only supports? SM\d+|requires? (?:device with )?(?:compute )?capability (?:of |>= ?)?\d",
    ),
    (
        Kind.QUANT_UNKNOWN,
        r"Unknown quantization|Invalid quantization method",
        r"quantization is currently not supported in",
        r"(?:Cannot find|Please install) .{0,20}bitsandbytes",
    ),
    (Kind.MAX_LEN, r"User-specified max_model_len \(\d+\) is greater than the derived max_model_len"),
    (
        Kind.REASONING_PARSER,
        r"(?i)(?:reasoning|tool(?: call)?) parser:? '?[\w-]+'? (?:not found|is not|\(chose from)",
        r"invalid (?:reasoning|tool call) parser",
    ),
    (
        Kind.ATTENTION,
        r"Unknown attention backend|Invalid attention backend|No valid attention backend found",
        r"Invalid value .{0,60} for VLLM_ATTENTION_BACKEND",
        r"Selected backend .{0,80} is not valid for this configuration",
        r"FlashAttention only supports Ampere GPUs or newer",
        r"--kv-cache-dtype \S+ is not supported by",
        r"Head size \d+ is not supported by",
        r"attention backends share no supported KV cache block size",
    ),
    (
        Kind.TENSOR_PARALLEL,
        r"must be divisible by tensor parallel size|is not divisible by tensor parallel",
        r"AssertionError: \d+ is not divisible by \d+",
        r"caused by too large tensor parallel size",
        r"is not divisible by (?:weight quantization block|min_thread)",
        r"[Hh]eads \(?\d+\)? (?:must be|is not) divisible by",
    ),
    (Kind.FLAG, r"error: unrecognized arguments:"),
    (
        Kind.FLAG_VALUE,
        r"error: argument \S+?: ",
        r"error: ambiguous option: ",
        r"error: (?:one of the arguments|the following arguments are required)",
    ),
    (
        Kind.PORT,
        r"OSError: \[Errno (?:98|48)\].*?[Aa]ddress already in use",
        r"error while attempting to bind on address .{0,60}(?:98|48|in use)",
        r"EADDRINUSE",
    ),
    # The model
    (
        Kind.GATED,
        r"You are trying to access a gated repo|GatedRepoError|Cannot access gated repo for url",
        r"Access to model .{0,80} is restricted|is awaiting a review from the repo authors",
    ),
    (
        Kind.TOKEN,
        r"Invalid credentials in Authorization header|Invalid user token|Invalid token passed",
        r"User Access Token .{0,60} is expired",
    ),
    (Kind.REMOTE_CODE, r"trust_remote_code=True", r"contains custom code which must be executed"),
    (
        Kind.CORRUPT,
        r"SafetensorError|HeaderTooLarge|InvalidHeaderDeserialization|MetadataIncompleteBuffer|invalid load key",
        r"PytorchStreamReader failed|Cannot find any model weights with",
        r"is not a valid JSON file|Couldn't instantiate the backend tokenizer",
        r"Can't load (?:image processor|tokenizer|processor|feature extractor|the configuration of)",
        r"does not appear to have a file named (?!config\.json)",
        r"No such file or directory: '[^']+\.(?:safetensors|bin|json)'",
        r"weights were not initialized from checkpoint|There is no module or parameter named",
        r"Attempted to load weight \(|Consistency check failed: file should be of size",
    ),
    (
        Kind.HF_VERSION,
        r"Transformers does not recognize this architecture|GGUF model with architecture \S+ is not supported",
        r"KeyError: '(?:qwen|internvl|llava|gemma|mllama|glm|kimi|ovis|minicpm|deepseek|mistral|holo|gui)\w*'",
        r"cannot import name '\w+' from 'transformers",
        r"'?Qwen\w+Config'? object has no attribute",
    ),
    (
        Kind.ARCH,
        r"Model architectures? .{1,1200}? (?:are not supported for now|was supported in vLLM until)",
        r"Model architectures? .{1,1200}? (?:failed to be inspected|is not supported by)",
        r"has no vLLM implementation|Cannot find model module",
    ),
    # The machine
    (Kind.FILES, r"\[Errno 24\] Too many open files\b(?!.{0,80}Consider increasing)"),
    (
        Kind.SHM,
        r"/dev/shm.{0,120}(?:No space|too small|not enough|insufficient)",  # noqa: S108
        r"No space left on device.{0,80}(?:/dev/shm|shm_|psm_|nccl-)",
        r"insufficient shared memory|[Bb]us error(?: \(core dumped\))?|SIGBUS|signal 7\b",
        r"Insufficient space in /dev/shm|[Ee]rror while creating shared memory segment",
        r"unable to (?:open|allocate|mmap) shared memory",
    ),
    (Kind.DISK, r"No space left on device|\[Errno 28\]|Not enough free disk space|\[Errno 122\]|Disk quota exceeded"),
    (
        Kind.COMPILER,
        r"Failed to find (?:a working )?C compiler|No working C\+\+ compiler found|InvalidCxxCompiler|CppCompileError",
        r"(?:Python|cuda|cuda_runtime|stdio)\.h: No such file",
        r"[Nn]inja.{0,40}not found|Ninja is required to load|ninja: build stopped|No such file or directory: 'ninja'",
        r"Could not find (?:nvcc|CUDA installation)|No such file or directory: '[^']*(?:nvcc|gcc|g\+\+|cc)'",
        r"Ninja build failed|nvcc fatal|CUDA_HOME environment variable is not set|cannot find -lcuda",
        r"CalledProcessError: Command '?\[?'?\S*(?:gcc|g\+\+|cc|nvcc|ninja)\b",
    ),
    (
        Kind.HOST_OOM,
        r"Cannot allocate memory|std::bad_alloc|DefaultCPUAllocator: (?:can't|not enough)",
        r"^(?:numpy\.\S*\._Array)?MemoryError\b",
        r"[Oo]ut of memory: Kill(?:ed)? process|oom-kill|OOMKilled|exit(?:ed with)? (?:code|status)[ :]*137",
        r"actor died .{0,120}(?:OOM|memory usage)|ray\.exceptions\.OutOfMemoryError",
        r"Unable to allocate .{0,20} for an array",
    ),
    (
        Kind.NCCL,
        r"NCCL error|nccl(?:UnhandledCuda|System|Internal|InvalidUsage|Remote)Error|DistBackendError",
        r"Watchdog caught collective operation timeout|Bootstrap : no socket interface found",
        r"peer access is not supported between these two devices",
        r"DistNetworkError|client socket has timed out after|DistStoreError",
    ),
    (
        Kind.CUDA,
        r"(?:CUDA|HIP) error: (?!out of memory|invalid device ordinal)",
        r"CUDA_ERROR_(?!OUT_OF_MEMORY|NO_DEVICE|NO_BINARY)|CUBLAS_STATUS_(?!SUCCESS)\w+|CUDNN_STATUS_(?!SUCCESS)\w+",
        r"cudaErrorIllegalAddress|uncorrectable ECC|NVRM: Xid|GPU has fallen off the bus",
        r"Cuda error \S+:\d+ '|Triton Error \[CUDA\]: (?!out of memory)",
    ),
    (
        Kind.STALLED,
        r"Timed out waiting for (?:new )?engine core processes",
        r"Did not receive response from front-end process within",
        r"RPC call to \w+ timed out|Engine (?:core )?(?:did not|failed to) (?:start|become ready) (?:in|within)",
    ),
)

LIKELY = _table(
    (
        Kind.DRIVER,
        r"libcuda\.so(?:\.1)?: cannot open|Found no NVIDIA driver on your system|cuInit failed",
        r"CUDA initialization: (?:Unexpected error from cudaGetDeviceCount|CUDA unknown error)",
        r"NVMLError_DriverNotLoaded|NVMLError_LibraryNotFound",
    ),
    (
        Kind.OFFLINE,
        r"OfflineModeIsEnabled|outgoing traffic has been disabled|HF_HUB_OFFLINE",
        r"LocalEntryNotFoundError(?!.{0,200}error happened)",
    ),
    (
        Kind.NETWORK,
        r"Temporary failure in name resolution|Name or service not known|Max retries exceeded with url|ConnectTimeout",
        r"ReadTimeout|Network is unreachable|ConnectionError: .{0,160}(?:host|resolve|Connection)|IncompleteRead",
        r"We couldn't connect to|Too Many Requests|(?:50[0-9]) Server Error|CAS service error|Connection reset by peer",
        r"LocalEntryNotFoundError|SSLError|ProxyError|CERTIFICATE_VERIFY_FAILED",
    ),
    (
        Kind.MODEL,
        r"Invalid repository ID or local directory specified|RepositoryNotFoundError|RevisionNotFoundError",
        r"is not a local folder and is not a valid model|Repository Not Found for url|HFValidationError|Repo id must",
        r"does not appear to have a file named config\.json|Could not detect config format",
    ),
    (Kind.NETWORK, r"HfHubHTTPError"),
    (
        Kind.IMPORT,
        r"(?:ImportError|OSError): lib[\w.+-]+\.so[\w.]*: cannot open shared object|undefined symbol",
        r"ModuleNotFoundError: |PackageNotFoundError|ImportError:|No module named '?vllm|vllm: (?:command )?not found",
        r"module '\w+(?:\.\w+)*' has no attribute",
        r"'_OpNamespace' '\w+' object has no attribute|numpy\.dtype size changed",
        r"GLIBC(?:XX)?_[\d.]+' not found",
    ),
    (Kind.CARD, r"is not compatible with the current PyTorch installation", r"PTXASError|Triton PTX codegen error"),
    (Kind.PERMISSION, r"PermissionError|\[Errno 13\]|\[Errno 30\] Read-only file system"),
    (
        Kind.VALUE,
        r"\d+ validation errors? for \w+(?:Config|Args)",
        r"[Qq]uantization method specified in the model config \(|is not supported for quantization method",
        r"chat template .{0,300}(?:failed to be opened|does not exist|not found)",
        r"looks like a file path, but it failed to be opened|chat template string is invalid",
        r"max_num_batched_tokens \(\d+\) is (?:smaller|larger|greater)|Chunked MM input disabled",
        r"must be greater than or equal to max_num_seqs|limit_mm_per_prompt|[Ii]nvalid modality",
        r"\[Errno 99\]|Cannot assign requested address|Unknown vLLM environment variable|invalid literal for int\(\)",
    ),
    (Kind.NCCL, r"NCCL WARN"),
    (Kind.PORT, r"[Aa]ddress already in use"),
)

#: torch's out of memory: which class it is depends on the stage.
OOM = re.compile(
    r"torch\.(?:cuda\.)?OutOfMemoryError|(?:CUDA|HIP|NPU) out of memory|CUDA error: out of memory"
    r"|CUDA_ERROR_OUT_OF_MEMORY|Cuda failure (?:2 )?'out of memory'|Triton Error \[CUDA\]: out of memory"
    r"|not enough GPU memory|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"
    r"|PT_DEVMEM Allocation failed"
)
#: What only points to the cause above it.
CONSEQUENCE = re.compile(
    r"Engine core initialization failed|Frontend process failed during engine core|EngineDeadError|EngineGenerateError"
    r"|EngineCore (?:encountered a fatal error|encountered an issue|hit an exception|failed to start)"
    r"|died unexpectedly|engine core exited unexpectedly|WorkerProc (?:initialization failed|failed to start)"
    r"|WorkerProc hit an exception|One or more workers failed|Worker failed with error|Executor failed"
    r"|Engine core proc .{0,40} died|Engine process (?:failed to start|\(pid \d+\) died)|MQEngineDead|is already dead"
    r"|AsyncLLM output_handler failed|Background loop (?:has errored|is stopped)|cancelled: engine dead"
)
#: What looks like an error and is only a note: another way is taken.
NOTE = re.compile(
    r"Ignoring this choice|[Ff]alling back|will be ignored|Retrying in |Exception ignored in|Error with model error="
)
#: How a process ended: "exit code: -9", "{'EngineCore_DP0': -9}", or the words of Python or a shell.
ENDED_BY = re.compile(
    r"(?:exit ?code:? ?|Failed (?:core|frontend) proc\(s\): \{'[\w ]+': )-(?P<number>\d+)"
    r"|Fatal Python error: (?P<words>\w[\w ]+)"
    r"|^(?P<shell>Segmentation fault|Illegal instruction|Aborted|Killed|Terminated)\b"
)
#: Somebody ended the start.
INTERRUPTED = re.compile(r"^KeyboardInterrupt\b|^SystemExit: (?:Terminat|Interrupt)|KeyboardInterrupt: terminated")


def first(patterns: Iterable[Pattern], text: str) -> tuple[Kind, int] | None:
    """The class that a text shows, and where in it."""
    for kind, match in patterns:
        if found := match.search(text):
            return kind, found.start()
    return None
