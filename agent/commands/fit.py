"""`mai-agent fit`: the size and tokens of an image as a model gets it."""

import json
from collections.abc import Sequence

from agent.commands.arguments import Parser, positive, size
from agent.families.registry import get_image_rule


def main(argv: Sequence[str]) -> int:
    """Print {"width", "height", "tokens"}."""
    parser = Parser(prog="mai-agent fit", description="Print the size and tokens of an image as it is sent.")
    parser.add_argument("--family", required=True, metavar="NAME", help="for example mai-ui, qwen3-vl, qwen2.5-vl")
    parser.add_argument("size", metavar="WIDTHxHEIGHT", type=size)
    parser.add_argument("--max-pixels", metavar="N", type=positive, help="a lower budget than the family's own")
    options = parser.parse_args(argv)
    rule = get_image_rule(options.family).capped(options.max_pixels)
    sent = rule.fit(options.size)
    print(json.dumps({"width": sent.width, "height": sent.height, "tokens": rule.tokens(sent)}))
    return 0
