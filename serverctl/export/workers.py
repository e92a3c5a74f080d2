"""Environments of programs that use a server: an agent's shell, and the Grid's inference worker."""

from collections.abc import Sequence

from serverctl.export.common import Document, Source, commented, exports
from serverctl.plan.show import limits_json

#: Token limit of an answer if a request names none.
_ANSWER_TOKENS = 4096


def agent_documents(source: Source) -> Sequence[Document]:
    """Lines for a shell: `set -a; . ./agent.env; set +a`, or `source`."""
    limits = limits_json(source.plan)
    endpoints = [f"{server.url}/v1" for server in source.servers()]
    agents = {"MAI_AGENT_ENDPOINT": endpoints[0], "MAI_AGENT_MODEL": source.model}
    pictures = {
        "MAI_SERVER_IMAGES": limits["images"],
        "MAI_SERVER_HISTORY_IMAGES": limits["history_images"],
        "MAI_SERVER_MAX_PIXELS": limits["max_pixels"] or source.plan.model.max_pixels,
    }
    programs = {
        "MAI_SERVER_ENDPOINTS": " ".join(endpoints),
        "MAI_SERVER_CONTEXT": limits["context"],
        **(pictures if source.plan.model.shape.vision else {}),
        "MAI_SERVER_SLOTS": source.slots,
    }
    text = source.header_comment(source.notes("env.agent")) + exports(agents) + "\n"
    return [Document("agent.env", text + commented(source.notes("env.programs")) + exports(programs))]


def grid_documents(source: Source) -> Sequence[Document]:
    """The .env of the Grid's inference worker; its README and worker/config.py name the variables."""
    most = source.slots
    many = source.plan.preset == "throughput" and most > 1
    settings = {
        "MODEL_NAME": source.model,
        "GRID_MAX_CONTEXT_LENGTH": source.plan.context,
        "GRID_MAX_LENGTH": min(_ANSWER_TOKENS, source.plan.context // 2),
        "GRID_MAX_THREADS": most if many else 1,
    }
    end = ", and its preset is for many requests." if many else "."
    parts = [
        source.header_comment(source.notes("grid.worker")),
        "GRID_API_KEY=\nOPENAI_API_KEY=\n",
        f"BACKEND_TYPE=openai\nOPENAI_URL={source.servers()[0].url}/v1\n",
    ]
    for name, value in settings.items():
        parts.append(commented(source.notes(f"grid.{name}", SLOTS=most, MANY=end)) + f"{name}={value}\n")
    return [Document("grid-worker.env", "\n".join(parts))]
