"""One folder a model family: its numbers, its prompt, its parser and its proofs. Nothing else lists it.

A new family is a folder with

- `family.toml`: its name, models, image rule, grid, history, sampling, published scores, and the names by which a
  served model is recognised;
- `made_by` in `family.toml`: the class that reads it, as a path below this package; without it, only the image rule is
  known. Code of the family's own lies in its folder;
- `prompt.toml`: the words of its prompts, our own around the published format;
- `samples/*.jsonl`: answers as its models write them, each with what it must be read as (tests/families/samples.py);
  at least 40, 30 of them malformed ("failure", or "malformed" for those that are read all the same);
- `calls.jsonl`: one call for every action that it knows, each with the actions it stands for: what `written` makes of
  it is read back as the same;
- `golden.json`: the requests of steps 1, 2, 5 and 12 as its published client sends them
  (tests/families/test_golden_requests.py).

What families share is in `shared`: answers taken apart (`answer_parts`), the ways of writing calls (`json_calls`,
`named_calls`, `xml_calls`, `code_calls`, `tabbed_calls`), the words of computer use (`computer_use`), families' own
names for them (`own_names`), typing that clicks or clears first (`text_entry`), points and grids (`points`), answers
that give one point (`point_answers`), JSON with mistakes (`lenient_json`). Families trained from Qwen-VL that call
`computer_use` share a whole family, `qwen.family.QwenComputerUse`: such a family is data, and code for what differs.
"""
