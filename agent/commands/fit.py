"""`mai-agent fit`: the size and tokens of an image as a model gets it."""

from collections.abc import Sequence

from agent.commands.arguments import size
from foundation.command_line import Parser, positive
from foundation.families import image_rule
from foundation.printing import put_json


def main(argv: Sequence[str]) -> int:
    """Print {"width", "height", "tokens"}."""
    parser = Parser(prog="mai-agent fit", description="Print the size and tokens of an image as it is sent.")
    parser.add_argument("--family", required=True, metavar="NAME", help="for example mai-ui, qwen3-vl, qwen2.5-vl")
    parser.add_argument("size", metavar="WIDTHxHEIGHT", type=size)
    parser.add_argument("--max-pixels", metavar="N", type=positive, help="a lower budget than the family's own")
    options = parser.parse_args(argv)
    rule = image_rule(options.family).capped(options.max_pixels)
    width, height = rule.fit(options.size.width, options.size.height)
    put_json({"width": width, "height": height, "tokens": rule.tokens(width, height)})
    return 0
