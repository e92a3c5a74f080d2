"""The client that speaks an endpoint's API."""

from collections.abc import Callable

from agent.model.asking import USUAL_PATIENCE, ModelClient, Patience, ServerCondition
from agent.model.client import ChatClient
from agent.model.endpoint import Endpoint
from agent.model.peers.anthropic_messages import AnthropicClient
from agent.model.peers.gemini_contents import GeminiClient
from agent.model.peers.openai_responses import OpenAiClient


def client_of(
    endpoint: Endpoint, patience: Patience = USUAL_PATIENCE, condition: Callable[[], ServerCondition] | None = None
) -> ModelClient:
    """The client of an endpoint; `condition` asks after a server of ours."""
    match endpoint.api:
        case "openai":
            return OpenAiClient(endpoint, patience)
        case "anthropic":
            return AnthropicClient(endpoint, patience)
        case "gemini":
            return GeminiClient(endpoint, patience)
        case "chat":
            return ChatClient(endpoint, patience, condition)
