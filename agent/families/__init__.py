"""One folder a model family: its numbers, its prompt, its parser and its samples. Nothing else lists it.

A new family is a folder with

- `family.toml`: its name, image rule, sampling, grid, and the names by which a served model is recognised;
- `family.py`: a `Family`, made by its function `create()`; without this file, only the image rule is known;
- `samples/*.jsonl`: answers as its models write them, each with what it must be read as (tests/families/samples.py).

What families share, they compose: the words of computer use (`computer_use`), points and grids (`points`), the ways of
writing calls (`syntaxes`), the order of a history (`layouts`), JSON with mistakes (`lenient_json`).
"""
