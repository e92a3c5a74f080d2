"""The arguments of the MCP server's tools, with their schemas."""

from collections.abc import Callable
from typing import Annotated, Any

from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations
from pydantic import Field

Picture = Annotated[bool, Field(description="also return a picture of the screen")]
Instruction = Annotated[str, Field(description="the task, as one would tell it to a person at this desktop")]
RecipeName = Annotated[str, Field(description="the recipe's name, as the tool `recipes` lists it")]
Values = Annotated[dict[str, str] | None, Field(description="values of its parameters; others keep their defaults")]
Target = Annotated[str, Field(description="the element's name; for type, none is the focus")]
Role = Annotated[str, Field(description="clicks only: the element's role, such as push button")]
Window = Annotated[str, Field(description="clicks and close_window: the title of the window")]
Text = Annotated[str, Field(description="what to type, the value to set, the keys to press, or what to open")]
QuestionText = Annotated[str, Field(description="the question, in a sentence")]
RunName = Annotated[str, Field(description="the run's name, as the result of `do` has it, or last")]


def strict_tool(function: Callable[..., Any], annotations: ToolAnnotations) -> Tool:
    """Return a tool that refuses arguments it does not know: a misspelt one would change what is done."""
    tool = Tool.from_function(function, annotations=annotations, structured_output=False)
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    return tool.model_copy(update={"parameters": arguments.model_json_schema(by_alias=True)})
