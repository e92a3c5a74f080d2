"""The named failures: what each means in plain words, and what a person can do."""

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
    TOKEN = "TOKEN"  # noqa: S105
    NETWORK = "NETWORK"
    CORRUPT = "CORRUPT"
    ARCH = "ARCH"
    REMOTE_CODE = "REMOTE_CODE"
    HF_VERSION = "HF_VERSION"
    TENSOR_PARALLEL = "TENSOR_PARALLEL"
    TOO_FEW_GPUS = "TOO_FEW_GPUS"
    NO_DEVICE = "NO_DEVICE"
    DRIVER = "DRIVER"
    CARD = "CARD"
    CUDA = "CUDA"
    NCCL = "NCCL"
    DISK = "DISK"
    SHM = "SHM"
    PERMISSION = "PERMISSION"
    FILES = "FILES"
    IMPORT = "IMPORT"
    COMPILER = "COMPILER"
    NO_ANSWER = "NO_ANSWER"
    STALLED = "STALLED"
    ENGINE_DIED = "ENGINE_DIED"
    CRASHED = "CRASHED"
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
    Kind.TOKEN: Kind.MODEL,
    Kind.MAX_LEN: Kind.VALUE,
    Kind.QUANT_UNKNOWN: Kind.VALUE,
    Kind.QUANT_ONLINE: Kind.VALUE,
    Kind.REASONING_PARSER: Kind.VALUE,
    Kind.ATTENTION: Kind.VALUE,
    Kind.FLAG_VALUE: Kind.FLAG,
    Kind.REMOTE_CODE: Kind.ARCH,
    Kind.HF_VERSION: Kind.ARCH,
}


@dataclass(frozen=True, slots=True)
class Words:
    """A failure in plain words: its title, why it happens, what to do."""

    title: str
    cause: str
    remedy: str


WORDS: dict[Kind, Words] = {
    Kind.FREE_MEM: Words(
        "The card has less free memory than vLLM was told to use",
        "Other programs, or a server that has not quite ended, hold part of the card's memory.",
        "Close what uses the card (`nvidia-smi` lists it), or use a smaller share: --set gpu_memory_utilization=0.8.",
    ),
    Kind.NO_KV: Words(
        "Nothing is left for the KV cache",
        "Weights and working memory fill the share of the card that vLLM may use. A smaller share would make it worse.",
        "Raise gpu_memory_utilization, or shrink the rest: longest_edge, max_num_batched_tokens, max_num_seqs.",
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
        "Its kernels, or 8-bit floats themselves (SM 8.9), need a newer compute capability.",
        "Choose another: fp8_per_tensor works from compute capability 7.5 (Marlin), AWQ and GPTQ too; KV cache: auto.",
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
        "vLLM has no parser of that name",
        "Names of reasoning and tool parsers use underscores (deepseek_r1), and differ between versions.",
        "Use one that the message lists: qwen3 for Qwen's thinking models, hermes for its tools.",
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
        "The model's files are damaged or incomplete",
        "A file is missing, cut off, a Git LFS pointer, or does not fit config.json: a download may have broken off.",
        "Delete the model from the hub's cache (or the folder) and download it again.",
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
        "The model cannot be shared by that many cards",
        "tensor_parallel_size must divide the attention heads, the vision tower's too, and quantised blocks.",
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
        "The driver is not loaded, or too old for the CUDA version that vLLM was built with.",
        "Update the driver (580 or newer for vLLM 0.33) and restart, or `mai-server install` an older build.",
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
        "The model or a cache could not be written.",
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
        "vLLM needs a compiler and finds none that works",
        "Triton, torch.compile and FlashInfer build small pieces of code at the first start.",
        "Install what the evidence names (Debian: gcc g++ python3-dev ninja-build), or --set enforce_eager=true.",
    ),
    Kind.CARD: Words(
        "This build of vLLM has no code for this card",
        "The card is older than the build serves (below SM 7.5: V100, GTX), or newer than the build is.",
        "Newer card: `mai-server install` a newer vLLM. Older: another card or endpoint, or --engine literal.",
    ),
    Kind.HF_VERSION: Words(
        "The installed transformers does not know this model",
        "Its config.json names a type that this version of transformers was made before, or no longer has.",
        "`mai-server install --again` installs the version that fits; for a newer model, a newer vLLM.",
    ),
    Kind.TOKEN: Words(
        "The hub refuses the token",
        "HF_TOKEN, or the token of `hf auth login`, is wrong or has expired.",
        "Make a new one at huggingface.co/settings/tokens, then `hf auth login`; or unset HF_TOKEN.",
    ),
    Kind.SHM: Words(
        "Shared memory is too small",
        "Processes of vLLM talk through /dev/shm; containers have only 64 MB of it unless told otherwise.",
        "In a container: --ipc=host or --shm-size=8g. Otherwise: look what fills /dev/shm (df -h /dev/shm).",
    ),
    Kind.PERMISSION: Words(
        "The server may not use a file or a port",
        "The evidence names the file; ports below 1024 are reserved, too.",
        "Give the user the right to it, or name another (HF_HOME, VLLM_CACHE_ROOT, --port).",
    ),
    Kind.CRASHED: Words(
        "A compiled part of vLLM crashed",
        "A fault in native code: SIGILL means that the processor lacks instructions this build uses.",
        "Start again; if it repeats: another vLLM version, another driver, or --set enforce_eager=true.",
    ),
    Kind.NO_ANSWER: Words(
        "The server is up but does not answer a request with a picture",
        "It said that it was ready, but one token about a small image did not come.",
        "The evidence holds its answer; `mai-server logs` shows more.",
    ),
    Kind.STALLED: Words(
        "The start made no progress",
        "For a long time nothing was heard: no log line, no download, no growth of memory, or no answer.",
        "Start again; `mai-server logs` shows the last lines. Slow disk: VLLM_ENGINE_READY_TIMEOUT_S=1800.",
    ),
    Kind.ENGINE_DIED: Words(
        "The engine died",
        "The process that computes ended. Where it does not say why, the system may have killed it.",
        "`dmesg` tells whether the system killed it (out of memory); start again.",
    ),
    Kind.KILLED: Words(
        "The server was killed",
        "A signal ended it: somebody, or the system because memory ran out.",
        "`dmesg` tells whether the system did it; start again.",
    ),
    Kind.EXITED: Words(
        "vLLM stopped with an error of no known class",
        "The evidence is its own error, where it named one.",
        "`mai-server logs` shows what came before.",
    ),
    Kind.NONE: Words("No failure", "The log shows none.", ""),
}
