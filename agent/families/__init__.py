"""One package per model family: its prompt, parser, coordinate grid, resize rule and sampling."""
