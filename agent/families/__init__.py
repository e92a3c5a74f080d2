"""One folder per model family: its numbers, prompt, parser and test samples. No list elsewhere names the families.

A new family is a folder with

- `family.toml`: its name, models, image rule, grid, history, sampling, published scores, and the names by which a
  served model is recognised;
- `made_by` in `family.toml`: the family's class, as a path below this package. Without it, only the image rule is
  known. The family's own code is in its folder;
- `prompt.toml`: the texts of its prompts, in our own words around the published format;
- `samples/*.jsonl`: answers as its models write them, each with the expected result (tests/families/samples.py); at
  least 40, of which 30 are malformed ("failure", or "malformed" for those that can be parsed nevertheless);
- `calls.jsonl`: one call for each action of the family, with the actions it stands for. The output of `written` for the
  call must parse to the same actions;
- `golden.json`: the requests of steps 1, 2, 5 and 12 as its published client sends them
  (tests/families/test_golden_requests.py).

Families share the code in `shared`: answer parts and calls in JSON (`answer_parts`), other syntaxes (`named_calls`,
`code_calls`), the vocabulary of computer use (`computer_use`), families' own names for it and typing that
clicks or clears first (`own_names`), points and grids (`points`), grounding answers (`point_answers`), and JSON with
mistakes (`lenient_json`). Families trained from Qwen-VL that call `computer_use` share
a whole family, `qwen.family.QwenComputerUse`. Such a family consists of data, and of code for its differences.
"""
