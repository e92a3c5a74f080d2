"""The named failures: how each shows in a log, what it means in plain words, and what a person can do.

Matches are on texts of vLLM 0.19 to 0.33, torch, the hub's client and the CUDA driver. Order matters: the first class
that matches wins, so causes come before their consequences, and what only says "see above" comes last.
"""

import re
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What went wrong."""

    FREE_MEM = "FREE_MEM"
    NO_KV = "NO_KV"
    KV_SHORT = "KV_SHORT"
    AUTOFIT_ZERO = "AUTOFIT_ZERO"
    LOAD_OOM = "LOAD_OOM"
    PROFILE_OOM = "PROFILE_OOM"
    GRAPH_OOM = "GRAPH_OOM"
    RUNTIME_OOM = "RUNTIME_OOM"
    HOST_OOM = "HOST_OOM"
    PROFILE_RACE = "PROFILE_RACE"
    BF16 = "BF16"
    QUANT_CC = "QUANT_CC"
    QUANT_UNKNOWN = "QUANT_UNKNOWN"
    QUANT_ONLINE = "QUANT_ONLINE"
    TRITON_SMEM = "TRITON_SMEM"
    PORT = "PORT"
    FLAG = "FLAG"
    FLAG_VALUE = "FLAG_VALUE"
    MAX_LEN = "MAX_LEN"
    REASONING_PARSER = "REASONING_PARSER"
    ATTENTION = "ATTENTION"
    VALUE = "VALUE"
    MODEL = "MODEL"
    OFFLINE = "OFFLINE"
    GATED = "GATED"
    NETWORK = "NETWORK"
    CORRUPT = "CORRUPT"
    ARCH = "ARCH"
    REMOTE_CODE = "REMOTE_CODE"
    TENSOR_PARALLEL = "TENSOR_PARALLEL"
    TOO_FEW_GPUS = "TOO_FEW_GPUS"
    NO_DEVICE = "NO_DEVICE"
    DRIVER = "DRIVER"
    CUDA = "CUDA"
    NCCL = "NCCL"
    DISK = "DISK"
    FILES = "FILES"
    IMPORT = "IMPORT"
    COMPILER = "COMPILER"
    NO_ANSWER = "NO_ANSWER"
    STALLED = "STALLED"
    ENGINE_DIED = "ENGINE_DIED"
    KILLED = "KILLED"
    EXITED = "EXITED"
    NONE = "NONE"

    @property
    def group(self) -> str:
        """The class it belongs to: several kinds are one class with several causes (`diagnose --json` prints both)."""
        return _GROUPS.get(self, self).value


#: Kinds that are finer than the classes of a vLLM start's failures (docs/serving.md).
_GROUPS = {
    Kind.OFFLINE: Kind.MODEL,
    Kind.GATED: Kind.MODEL,
    Kind.MAX_LEN: Kind.VALUE,
    Kind.QUANT_UNKNOWN: Kind.VALUE,
    Kind.QUANT_ONLINE: Kind.VALUE,
    Kind.REASONING_PARSER: Kind.VALUE,
    Kind.ATTENTION: Kind.VALUE,
    Kind.FLAG_VALUE: Kind.FLAG,
    Kind.REMOTE_CODE: Kind.ARCH,
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """How a failure shows: a text in the log, and what to say about it."""

    kind: Kind
    match: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Words:
    """A failure in plain words: its title, why it happens, what to do."""

    title: str
    cause: str
    remedy: str


def _p(kind: Kind, text: str) -> Pattern:
    return Pattern(kind, re.compile(text, re.DOTALL))


PATTERNS: tuple[Pattern, ...] = (
    _p(
        Kind.FREE_MEM,
        r"Free memory on device .{0,80}?GiB\) on startup is less than (?:desired GPU memory utilization|the engine's budget)"
        r"|Available memory on node \d+ \([\d.]+/[\d.]+ GiB\) on startup is less than desired",
    ),
    _p(
        Kind.NO_KV,
        r"No available memory for the cache blocks|on kv cache allocation is less than requested memory for kv \(-",
    ),
    _p(
        Kind.FREE_MEM,
        r"Available memory on node \d+ .{0,60}on kv cache allocation is less than requested memory for kv",
    ),
    _p(Kind.KV_SHORT, r"To serve at least one request with the model(?:'|’)s max seq len"),
    _p(
        Kind.KV_SHORT,
        r"The model's max seq len \(\d+\) is larger than the maximum number of tokens that can be stored in KV cache",
    ),
    _p(Kind.AUTOFIT_ZERO, r"Cannot auto-fit max_model_len"),
    _p(Kind.PROFILE_RACE, r"Error in memory profiling\. Initial free memory"),
    _p(Kind.BF16, r"Bfloat16 is only supported on GPUs with compute capability of at least 8\.0"),
    _p(Kind.QUANT_ONLINE, r"The `fp8` quantization method no longer supports online"),
    _p(Kind.QUANT_CC, r"is not supported for the current GPU\.\s+Minimum\s+capability"),
    _p(Kind.QUANT_UNKNOWN, r"Unknown quantization method|Unknown quantization|Invalid quantization method"),
    _p(Kind.TRITON_SMEM, r"triton\.runtime\.errors\.OutOfResources|out of resource: shared memory"),
    _p(
        Kind.PORT, r"OSError: \[Errno (?:98|48)\].*?[Aa]ddress already in use|error while attempting to bind on address"
    ),
    _p(Kind.FLAG, r"error: unrecognized arguments:"),
    _p(Kind.FLAG_VALUE, r"error: argument \S+?: |error: (?:one of the arguments|the following arguments are required)"),
    _p(Kind.MAX_LEN, r"User-specified max_model_len \(\d+\) is greater than the derived max_model_len"),
    _p(Kind.REASONING_PARSER, r"(?i)reasoning parser:? '?[\w-]+'? (?:not found|is not)|invalid reasoning parser"),
    _p(
        Kind.ATTENTION,
        r"Unknown attention backend|Invalid attention backend|Selected backend .{0,80} is not valid for this configuration"
        r"|No valid attention backend found",
    ),
    _p(Kind.TENSOR_PARALLEL, r"must be divisible by tensor parallel size|is not divisible by tensor parallel"),
    _p(
        Kind.TOO_FEW_GPUS,
        r"World size \(\d+\) is larger than the number of\s+available GPUs|CUDA error: invalid device ordinal"
        r"|Requested \d+ GPUs?, but only \d+",
    ),
    _p(Kind.GATED, r"You are trying to access a gated repo|GatedRepoError|Access to model .{0,80} is restricted"),
    _p(
        Kind.MODEL,
        r"Invalid repository ID or local directory specified|RepositoryNotFoundError|is not a local folder and is not a valid model"
        r"|Repository Not Found for url|HFValidationError|does not appear to have a file named config\.json|Repo id must",
    ),
    _p(Kind.OFFLINE, r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled"),
    _p(
        Kind.NETWORK,
        r"Temporary failure in name resolution|Name or service not known|Max retries exceeded with url|ConnectTimeout"
        r"|huggingface_hub\.errors\.HfHubHTTPError|Network is unreachable|ConnectionError: .{0,120}(?:host|resolve)|We couldn't connect to",
    ),
    _p(
        Kind.CORRUPT,
        r"SafetensorError|HeaderTooLarge|InvalidHeaderDeserialization|MetadataIncompleteBuffer|invalid load key|PytorchStreamReader failed",
    ),
    _p(
        Kind.ARCH,
        r"Model architectures? .{1,200}? (?:are not supported for now|was supported in vLLM until|failed to be inspected)"
        r"|Transformers does not recognize this architecture|has no vLLM implementation",
    ),
    _p(Kind.REMOTE_CODE, r"trust_remote_code=True|contains custom code which must be executed"),
    _p(
        Kind.DRIVER,
        r"The NVIDIA driver on your system is too old|CUDA driver version is insufficient for CUDA runtime|libcuda\.so\.1: cannot open",
    ),
    _p(
        Kind.DRIVER,
        r"system has unsupported display driver / cuda driver combination|Driver/library version mismatch|no kernel image is available",
    ),
    _p(Kind.IMPORT, r"(?:ImportError|OSError): lib[\w.+-]+\.so[\w.]*: cannot open shared object|undefined symbol"),
    _p(Kind.NO_DEVICE, r"Failed to infer device type|No CUDA GPUs are available|no CUDA-capable device is detected"),
    _p(Kind.FILES, r"\[Errno 24\] Too many open files\b(?!.{0,80}Consider increasing)"),
    _p(Kind.DISK, r"No space left on device|\[Errno 28\]|Not enough free disk space"),
    _p(
        Kind.COMPILER,
        r"Failed to find C compiler|Failed to find a working C compiler|Python\.h: No such file|ninja.{0,40}not found",
    ),
    _p(Kind.NCCL, r"NCCL error|ncclUnhandledCudaError|ncclSystemError|ncclInternalError|NCCL WARN"),
    _p(
        Kind.HOST_OOM,
        r"Cannot allocate memory|std::bad_alloc|DefaultCPUAllocator: (?:can't|not enough)|^MemoryError|\nMemoryError",
    ),
    _p(
        Kind.CUDA,
        r"CUDA error: (?!out of memory|invalid device ordinal)|CUDA_ERROR_(?!OUT_OF_MEMORY)|cudaErrorIllegalAddress|uncorrectable ECC",
    ),
    _p(Kind.IMPORT, r"ModuleNotFoundError: |PackageNotFoundError|ImportError: "),
    _p(Kind.VALUE, r"\d+ validation errors? for \w+Config|validation error for EngineArgs"),
)

#: torch's out of memory: which class it is depends on the stage.
OOM = re.compile(
    r"torch\.(?:cuda\.)?OutOfMemoryError|CUDA out of memory|CUDA error: out of memory|HIP out of memory|CUDA_ERROR_OUT_OF_MEMORY"
    r"|Failed to load model - not enough GPU memory|not enough GPU memory"
)
#: What only points to the cause above it.
CONSEQUENCE = re.compile(
    r"Engine core initialization failed|EngineDeadError|EngineCore encountered (?:a fatal error|an issue)|died unexpectedly"
    r"|WorkerProc initialization failed|Engine core proc .{0,40} died"
)

WORDS: dict[Kind, Words] = {
    Kind.FREE_MEM: Words(
        "The card has less free memory than vLLM was told to use",
        "Other programs, or a server that has not quite ended, hold part of the card's memory.",
        "Close what uses the card (`nvidia-smi` lists it), or use a smaller share: --set gpu_memory_utilization=0.8.",
    ),
    Kind.NO_KV: Words(
        "Nothing is left for the KV cache",
        "Weights and working memory fill the share of the card that vLLM may use. A smaller share would make it worse.",
        "Raise gpu_memory_utilization, or shrink the rest: longest_edge, max_num_batched_tokens, max_num_seqs, 8-bit weights.",
    ),
    Kind.KV_SHORT: Words(
        "The context is longer than the KV cache",
        "A single request of max_model_len tokens would not fit into the memory left for the KV cache.",
        "Use a context of at most what the message names: --set max_model_len=N, or max_model_len=auto.",
    ),
    Kind.AUTOFIT_ZERO: Words(
        "Not even one token fits into the KV cache",
        "Weights and working memory fill the share of the card that vLLM may use.",
        "Raise gpu_memory_utilization, use 8-bit weights or a smaller model.",
    ),
    Kind.LOAD_OOM: Words(
        "The model does not fit into the card's memory",
        "The card ran out of memory while the weights were loaded.",
        "Use 8-bit weights (--set quantization=fp8_per_tensor), a 4-bit checkpoint, a smaller model, or more cards.",
    ),
    Kind.PROFILE_OOM: Words(
        "The largest request does not fit beside the model",
        "The card ran out of memory while vLLM tried the largest image and the largest batch.",
        "Lower longest_edge, images, max_num_batched_tokens or max_num_seqs.",
    ),
    Kind.GRAPH_OOM: Words(
        "No memory was left for CUDA graphs",
        "The card ran out of memory while graphs were captured, after the KV cache had taken its share.",
        "Lower max_cudagraph_capture_size or gpu_memory_utilization, or --set enforce_eager=true (slower).",
    ),
    Kind.RUNTIME_OOM: Words(
        "The card ran out of memory while serving",
        "A request needed more working memory than was measured at the start, or another program took some.",
        "Lower gpu_memory_utilization by 0.04; close other programs that use the card.",
    ),
    Kind.HOST_OOM: Words(
        "The machine ran out of main memory",
        "The system killed the server or refused it memory (weights are read through main memory).",
        "Close other programs, add swap, or use a smaller model.",
    ),
    Kind.PROFILE_RACE: Words(
        "Another program freed memory of the card while vLLM measured it",
        "vLLM compares free memory before and after; a program that ends in between spoils the measurement.",
        "Start again.",
    ),
    Kind.BF16: Words(
        "This card has no bfloat16",
        "bfloat16 starts at compute capability 8.0.",
        "--set dtype=half.",
    ),
    Kind.QUANT_CC: Words(
        "This card is too old for that quantisation",
        "The method's kernels need a newer compute capability.",
        "Choose another: fp8_per_tensor works from compute capability 7.5 (Marlin), AWQ and GPTQ too.",
    ),
    Kind.QUANT_UNKNOWN: Words(
        "This vLLM does not know that quantisation",
        "Methods come and go: bitsandbytes became a plugin of its own (vllm-bnb-plugin), squeezellm is gone.",
        "Use fp8_per_channel or fp8_per_tensor for 8 bits, or an AWQ or GPTQ checkpoint (found by itself) for 4 bits.",
    ),
    Kind.QUANT_ONLINE: Words(
        "`fp8` alone no longer quantises while loading",
        "Since vLLM 0.28 the name says how finely: per tensor, per channel or per block.",
        "--set quantization=fp8_per_channel (SM 8.9 and newer) or fp8_per_tensor (older cards).",
    ),
    Kind.TRITON_SMEM: Words(
        "A kernel needs more shared memory than this card has",
        "Some Triton kernels exceed the 64 KB a block of compute capability 7.5 (vllm#36802).",
        "Try another backend (--set attention_backend=NAME); otherwise use another card or --engine literal.",
    ),
    Kind.PORT: Words(
        "The port is taken",
        "Another program listens on it already.",
        "Leave the port out (a free one is found), or name another.",
    ),
    Kind.FLAG: Words(
        "vLLM does not know a flag",
        "Flags come and go between versions; this one is not in the installed version.",
        "Leave it out; `mai-server plan` emits only flags that the installed vLLM has.",
    ),
    Kind.FLAG_VALUE: Words(
        "A flag has a value it does not take",
        "The parser refused it before anything was started.",
        "The evidence names flag and value.",
    ),
    Kind.MAX_LEN: Words(
        "The context is longer than the model was made for",
        "max_model_len is above the model's own max_position_embeddings.",
        "Use a shorter max_model_len, or leave it out.",
    ),
    Kind.REASONING_PARSER: Words(
        "vLLM has no reasoning parser of that name",
        "Names use underscores (deepseek_r1), and differ between versions.",
        "Use one that the message lists: qwen3 for Qwen's thinking models.",
    ),
    Kind.ATTENTION: Words(
        "That attention backend cannot be used here",
        "It does not exist in this version, or does not fit the card, the head size or the KV cache's format.",
        "Leave attention_backend out: vLLM chooses one that fits.",
    ),
    Kind.VALUE: Words(
        "vLLM refuses a setting",
        "Its own check of the configuration failed; the evidence says which value.",
        "Change or leave out that setting.",
    ),
    Kind.MODEL: Words(
        "There is no such model",
        "It is neither a folder with a config.json nor a repository on the hub that this account can see.",
        "Check the name; log in with `hf auth login` if it is private.",
    ),
    Kind.OFFLINE: Words(
        "The model is not on this machine, and the network is not used",
        "The hub's client is in offline mode or could not reach the hub, and its cache does not hold the model.",
        "Unset HF_HUB_OFFLINE or connect to the network once, or name a folder with the model.",
    ),
    Kind.GATED: Words(
        "The model asks everybody to accept its terms first",
        "Its repository is gated, and no token that was let in is set.",
        "Accept the terms on its page, then `hf auth login` or set HF_TOKEN.",
    ),
    Kind.NETWORK: Words(
        "The model could not be downloaded",
        "The hub could not be reached, or broke off.",
        "Check the network and start again: what was downloaded is kept.",
    ),
    Kind.CORRUPT: Words(
        "The model's files are damaged",
        "A weights file cannot be read: a download broke off, or the disk is faulty.",
        "Delete the model from the hub's cache and start again.",
    ),
    Kind.ARCH: Words(
        "This vLLM does not serve that kind of model",
        "The architecture in config.json is not among those it knows (or no longer).",
        "Use a newer vLLM (`mai-server install`), or another model.",
    ),
    Kind.REMOTE_CODE: Words(
        "The model wants to run code of its own on this machine",
        "Its repository brings Python code that would have to be trusted; the supported families need none.",
        "Use another model; if you trust it, pass -- --trust-remote-code yourself.",
    ),
    Kind.TENSOR_PARALLEL: Words(
        "The model's heads cannot be shared by that many cards",
        "tensor_parallel_size must divide the number of attention heads, of the vision tower too.",
        "Use 1, 2, 4 or 8 cards.",
    ),
    Kind.TOO_FEW_GPUS: Words(
        "More cards are asked for than there are",
        "tensor, pipeline and data parallelism together need as many cards as their product.",
        "Ask for fewer, or check CUDA_VISIBLE_DEVICES.",
    ),
    Kind.NO_DEVICE: Words(
        "vLLM finds no device to run on",
        "There is no card that it can see, or its build is for another kind of machine.",
        "Check `nvidia-smi` and CUDA_VISIBLE_DEVICES; `mai-server doctor` says which build is for this machine.",
    ),
    Kind.DRIVER: Words(
        "The card's driver does not suit this vLLM",
        "The driver is too old for the CUDA version that vLLM was built with, is not loaded, or the card is not among its targets.",
        "Update the driver (580 or newer for vLLM 0.33), or `mai-server install` an older build.",
    ),
    Kind.CUDA: Words(
        "The card reported an error",
        "A kernel failed; after that the process cannot use the card any more.",
        "Start again; if it repeats, try --set enforce_eager=true, and look for Xid messages in the system's log.",
    ),
    Kind.NCCL: Words(
        "The cards could not talk to each other",
        "NCCL, which moves data between cards, failed.",
        "Try one card (--gpus 1), or NCCL_P2P_DISABLE=1 in the environment; NCCL_DEBUG=INFO says more.",
    ),
    Kind.DISK: Words(
        "The disk is full",
        "The model, a cache or shared memory could not be written.",
        "Free some space (the hub's cache and ~/.cache/vllm are the usual ones), then start again.",
    ),
    Kind.FILES: Words(
        "Too many files are open",
        "The limit of open files (ulimit -n) is too low for this many connections.",
        "Raise it: ulimit -n 65536.",
    ),
    Kind.IMPORT: Words(
        "The vLLM installation is broken",
        "A module or library that it needs is missing or does not fit.",
        "`mai-server install --again` makes a fresh environment.",
    ),
    Kind.COMPILER: Words(
        "vLLM needs a C compiler and finds none",
        "Triton and torch.compile build small pieces of code at the first start.",
        "Install one (Debian: gcc and python3-dev), or --set enforce_eager=true.",
    ),
    Kind.NO_ANSWER: Words(
        "The server is up but does not answer a request with a picture",
        "It said that it was ready, but one token about a small image did not come.",
        "The evidence holds its answer; `mai-server logs` shows more.",
    ),
    Kind.STALLED: Words(
        "The start made no progress",
        "For a long time there was no log line, no download, no growth of the card's memory and no work of the processor.",
        "Start again; `mai-server logs` shows the last lines.",
    ),
    Kind.ENGINE_DIED: Words(
        "The engine died",
        "The process that computes ended without saying why; a kill by the system (out of memory) looks like this.",
        "`dmesg` tells whether the system killed it; start again.",
    ),
    Kind.KILLED: Words(
        "The server was killed",
        "A signal ended it: somebody, or the system because memory ran out.",
        "`dmesg` tells whether the system did it; start again.",
    ),
    Kind.EXITED: Words(
        "The server ended by itself",
        "It was not asked to, and its log names no cause that is known here.",
        "The last lines of its log are the best hint: `mai-server logs`.",
    ),
    Kind.NONE: Words("No failure", "The log shows none.", ""),
}
