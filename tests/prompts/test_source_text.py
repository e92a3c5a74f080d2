"""Texts taken out of made-up Python source, without running it."""

from textwrap import dedent

import pytest

from agent.prompts.source_text import Source, SourceError

MODULE = dedent('''
    import json
    from elsewhere import Template

    PLAIN = """A text. """.strip()
    GREETING = "Hello {name}, {{braces}} stay"
    LONGER = PLAIN
    LONGER += " And more."
    PLAIN = "Written later."
    COUNT = 3
    ESCAPED = 'a\\nb \\u00e9'
    if COUNT == 3:
        CHOSEN = "three"
    else:
        CHOSEN = "other"
    for word in unknown():
        LOOPED = word
    RUN = open("/etc/passwd").read()
    RENDERED = Template("x").render()


    def schema(description):
        """Docs are passed over."""
        extra = description + "!"
        return {"name": "f", "description": extra, "list": ["a", 1, None, True]}


    class Tool:
        name = "tool"
        message = f"I am {name}."

        @property
        def description(self):
            return f"""
    The screen is {self.width}x{self.height}.
    """.strip()


    class Agent:
        def ask(self, task, kind="relative"):
            size = measure(task)
            lines = ["first", (f"size {size}" if self.kind == "absolute" else "no size"), "last"]
            text = "\\n".join(lines)
            while True:
                try:
                    reply = send(text)
                except Exception:
                    text = "broken"
            end = """<tools>""" + json.dumps({"text": "\\n".join(lines)}) + "</tools>"
            return end
''')
GIVEN = {"self.width": "%W%", "self.height": "%H%", "self.kind": "relative", "name": "%N%"}


@pytest.mark.parametrize(
    ("expression", "within", "text"),
    [
        ("PLAIN", "", "Written later."),
        ("LONGER", "", "A text. And more."),
        ("GREETING.format(name='you')", "", "Hello you, {braces} stay"),
        ("ESCAPED", "", "a\nb é"),
        ("CHOSEN", "", "three"),
        ("json.dumps(schema(PLAIN))", "",
         '{"name": "f", "description": "Written later.!", "list": ["a", 1, null, true]}'),
        ("schema(description='é')['description']", "", "é!"),
        ("Tool.name + ': ' + Tool.description", "", "tool: The screen is %W%x%H%."),
        ("end", "Agent.ask", '<tools>{"text": "first\\nno size\\nlast"}</tools>'),
    ],
)  # fmt: skip
def test_an_expression_is_worked_out_from_what_the_source_says(expression: str, within: str, text: str) -> None:
    given = {name: value for name, value in GIVEN.items() if name != "name"}
    assert Source([MODULE], given).text(expression, within) == text


@pytest.mark.parametrize(
    ("expression", "within"),
    [
        ("MISSING", ""),
        ("LOOPED", ""),  # assigned in a loop
        ("RUN", ""),  # would have to be run
        ("RENDERED", ""),
        ("text", "Agent.ask"),  # assigned again where it is not followed
        ("size", "Agent.ask"),
        ("kind", "Agent.ask"),  # a parameter
        ("'x' * 1000000000", ""),
        ("__import__('os').getcwd()", ""),
    ],
)
def test_what_would_have_to_be_run_is_refused(expression: str, within: str) -> None:
    with pytest.raises(SourceError):
        Source([MODULE]).text(expression, within)


def test_what_only_a_running_program_knows_is_given() -> None:
    source = Source(["TEXT = f'On {today().isoformat()}: {task}'"], {"today().isoformat()": "Monday", "task": "%T%"})
    assert source.text("TEXT") == "On Monday: %T%"


def test_several_files_are_one_set_of_names_of_which_the_first_wins() -> None:
    assert Source(["A = 'a'", "A = 'b'\nB = A + 'c'"]).text("A + B") == "abc"
