"""The environment of a program that uses a server: the Grid's inference worker."""

from collections.abc import Sequence

from serverctl.export.common import Document, Source, commented

#: Token limit of an answer if a request names none.
_ANSWER_TOKENS = 4096


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
