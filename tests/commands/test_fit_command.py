"""`mai-agent fit`: the size and tokens of an image as it is sent."""

import json

import pytest
from commandline import CommandLine

from foundation.errors import ExitStatus


@pytest.mark.parametrize(
    ("arguments", "width", "height", "tokens"),
    [
        (("--family", "mai-ui", "1920x1080"), 1920, 1088, 2040),
        (("--family", "qwen3-vl", "3840x2160"), 3840, 2176, 8160),
        (("--family", "qwen3-vl", "1920x1080", "--max-pixels", "512000"), 928, 512, 464),
        (("--family", "mai-ui", "3840X2160", "--max-pixels", "2097152"), 1920, 1056, 1980),
        (("--family", "qwen2.5-vl", "1920x1080"), 1932, 1092, 2691),
        (("--family", "qwen2-vl", "1366x768"), 1372, 756, 1323),
    ],
)
def test_it_prints_the_size_and_tokens_of_the_image_as_sent(
    mai: CommandLine, arguments: tuple[str, ...], width: int, height: int, tokens: int
) -> None:
    ran = mai("fit", *arguments)
    assert (ran.status, ran.err) == (ExitStatus.DONE, "")
    assert json.loads(ran.out) == {"width": width, "height": height, "tokens": tokens}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "--family"),
        (("--family", "mai-ui"), "WIDTHxHEIGHT"),
        (("--family", "nobody", "10x10"), "nobody"),
        (("--family", "mai-ui", "1920"), "1920x1080"),
        (("--family", "mai-ui", "0x10"), "at least 1"),
        (("--family", "mai-ui", "20001x100"), "200 times"),
        (("--family", "mai-ui", "10x10", "--max-pixels", "0"), "at least 1"),
        (("--family", "mai-ui", "10x10", "--max-pixels", "many"), "whole number"),
        (("--family", "mai-ui", "10x10", "--max-pixels", "100"), "65536"),
    ],
)
def test_what_cannot_be_fitted_is_a_usage_error_that_says_why(
    mai: CommandLine, arguments: tuple[str, ...], named: str
) -> None:
    ran = mai("fit", *arguments)
    assert ran.status == ExitStatus.USAGE
    assert ran.out == ""
    assert named in ran.err
