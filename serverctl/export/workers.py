"""Environments of programs that use a server: an agent's shell, and the Grid's inference worker."""

import shlex
from collections.abc import Mapping, Sequence

from serverctl.export.common import Document, Source, commented, header_comment
from serverctl.plan.show import limits_json

#: Tokens of an answer where a request names none.
_ANSWER_TOKENS = 4096


def agent_documents(source: Source) -> Sequence[Document]:
    """Lines for a shell: `set -a; . ./agent.env; set +a`, or `source`."""
    limits = limits_json(source.plan)
    endpoints = [f"{server.url}/v1" for server in source.servers()]
    text = header_comment(
        source,
        "Use:  . ./agent.env && mai-agent 'open settings and enable dark mode'",
        "mai-agent reads the first two, and the key from MAI_AGENT_API_KEY, which is not here: set it to the "
        "server's VLLM_API_KEY. A server that `mai-server up` started needs none of this: the agent finds it.",
    )
    text += _exports({"MAI_AGENT_ENDPOINT": endpoints[0], "MAI_AGENT_MODEL": source.model}) + "\n"
    text += commented(
        [
            "For programs of your own. Context: tokens of prompt and answer together. Images: at most in one "
            "request. History images: what the model's own client keeps. Max pixels: larger screenshots are shrunk "
            "by the server. Slots: requests at a time, on each server. An agent should stay with one server: its "
            "caches are there.",
        ]
    )
    text += _exports(
        {
            "MAI_SERVER_ENDPOINTS": " ".join(endpoints),
            "MAI_SERVER_CONTEXT": limits["context"],
            "MAI_SERVER_IMAGES": limits["images"],
            "MAI_SERVER_HISTORY_IMAGES": limits["history_images"],
            "MAI_SERVER_MAX_PIXELS": limits["max_pixels"] or source.plan.model.max_pixels,
            "MAI_SERVER_SLOTS": source.slots,
        }
    )
    return [Document("agent.env", text)]


def _exports(values: Mapping[str, object]) -> str:
    return "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in values.items())


def grid_documents(source: Source) -> Sequence[Document]:
    """The .env of the Grid's inference worker (its README and worker/config.py name the variables)."""
    most = source.slots
    many = source.plan.preset == "throughput" and most > 1
    about = header_comment(
        source,
        "For the Grid's inference worker, as its .env. One worker a server; this is for the first.",
        "Keys are not here: put the Grid's own into GRID_API_KEY, and the server's VLLM_API_KEY into OPENAI_API_KEY.",
    )
    threads = (
        "Jobs at a time. 1 leaves all batching to vLLM and is right for most; more only where the server has slots to "
        f"spare: this plan's server has {most}" + (", and its preset is for many requests." if many else ".")
    )
    settings = (
        ("As the server calls it (--served-model-name).", "MODEL_NAME", source.model),
        ("The server's --max-model-len, exactly: longer jobs would be refused by it.", "GRID_MAX_CONTEXT_LENGTH",
         source.plan.context),
        ("Tokens of an answer where a job names none; prompt and answer share the context.", "GRID_MAX_LENGTH",
         min(_ANSWER_TOKENS, source.plan.context // 2)),
        (threads, "GRID_MAX_THREADS", most if many else 1),
    )  # fmt: skip
    parts = [
        about,
        "GRID_API_KEY=\nOPENAI_API_KEY=\n",
        f"BACKEND_TYPE=openai\nOPENAI_URL=http://127.0.0.1:{source.port}/v1\n",
        *(commented([text]) + f"{name}={value}\n" for text, name, value in settings),
    ]
    return [Document("grid-worker.env", "\n".join(parts))]
