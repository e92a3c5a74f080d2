"""Fills in the templates of exported files: files in `configs/exports/` with marks (@NAME@) for variable parts."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from foundation.configs import configs_dir


def template(name: str, values: Mapping[str, str]) -> str:
    """A file of configs/exports/ with its marks (@NAME@) filled in."""
    return filled((configs_dir() / "exports" / name).read_text(encoding="utf-8"), values)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with its marks replaced by their values, in one pass."""
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], text)


def yaml_template(name: str, **values: Any) -> list[Any]:
    """The objects of a YAML file in configs/exports/, filled in.

    A mark (@NAME@) that is a whole YAML value becomes the given value, of any type; None removes the entry.
    """
    import yaml

    marks = {f"@{mark}@": value for mark, value in values.items()}
    texts = {mark: str(value) for mark, value in marks.items()}

    def fill(part: Any) -> Any:
        match part:
            case dict():
                return {key: value for key, old in part.items() if (value := fill(old)) is not None}
            case list():
                return [fill(one) for one in part]
            case str():
                return marks[part] if part in marks else filled(part, texts)
        return part

    text = (configs_dir() / "exports" / name).read_text(encoding="utf-8")
    return [fill(document) for document in yaml.safe_load_all(text)]


def to_yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    """Format YAML for readers: keys in order, one entry per line, no anchors."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
            return super().increase_indent(flow, False)

        def represent_str(self, data: str) -> Any:
            return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if data.count("\n") > 1 else None)

    Plain.add_representer(str, Plain.represent_str)
    return yaml.dump_all(documents, Dumper=Plain, sort_keys=False, width=1000, allow_unicode=True)
