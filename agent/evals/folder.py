"""The folder of an evaluation: `eval.json`, `answers.jsonl` (also as others published them) and `verdicts.jsonl`."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent.evals.judging import Verdict, judge
from agent.evals.samples import Benchmark
from agent.families.registry import get_family
from foundation.errors import UsageError
from foundation.files import JsonLines, cannot_write, read_json_object, read_lines, write_file

#: Entries of eval.json that must be the same for all answers in a folder. A hash covers the rest of each request.
_SAME = ("benchmark", "model", "family", "words")
_WHAT = "an answer to a sample"


def is_answer(line: Mapping[str, Any]) -> bool:
    """Whether a line holds an answer. Other lines tell why the model gave none."""
    return "error" not in line


def _take(answers: dict[str, dict[str, Any]], line: dict[str, Any]) -> None:
    """Keep a line. A later answer to a sample replaces an earlier one, but a refusal never replaces an answer."""
    if is_answer(line) or not is_answer(answers.get(line["id"], {"error": ""})):
        answers[line["id"]] = line


def read_answers(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the answers by sample. Raises UsageError."""
    answers: dict[str, dict[str, Any]] = {}
    try:
        read_lines(folder / "answers.jsonl", _WHAT, lambda line: _take(answers, line))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{folder} cannot be read ({error.strerror}).", "Name the folder of an evaluation.") from error
    return answers


class AnswersFile(JsonLines):
    """The answers of one run of a model over a benchmark. Raises UsageError: the folder is of another run."""

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        self._folder = folder
        self._run = dict(run)
        self.answers: dict[str, dict[str, Any]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        super().__init__(folder / "answers.jsonl", _WHAT, lambda line: _take(self.answers, line), "evaluation")
        try:
            self._check_run()
        except BaseException:
            self.close()
            raise

    @override
    def append(self, document: Mapping[str, Any]) -> None:
        super().append(document)
        _take(self.answers, dict(document))

    def _check_run(self) -> None:
        path = self._folder / "eval.json"
        kept = read_json_object(path)
        for key in _SAME if kept else ():
            if kept.get(key) != self._run.get(key):
                raise UsageError(
                    f"{self._folder} holds answers of another {key} ({kept.get(key)}, not {self._run.get(key)}).",
                    "Name another folder with --out.",
                )
        write_file(path, json.dumps(self._run, indent=1) + "\n", 0o666)


def read_run(folder: Path) -> dict[str, Any]:
    """Return what a folder evaluates. Raises UsageError if the folder is no evaluation."""
    run = read_json_object(folder / "eval.json")
    if not isinstance(run.get("benchmark"), str):
        raise UsageError(f"{folder} is not the folder of an evaluation.", "Name the one given to --out.")
    return run


def judge_all(folder: Path, benchmark: Benchmark, answers: Mapping[str, Mapping[str, Any]]) -> list[Verdict]:
    """Judge the answers to a benchmark's samples, in its order, and write the verdicts. Raises MaiError.

    Answers to other samples of the same id are left out: their instruction or picture is another one.
    """
    verdicts = [
        judge(answers[sample.id], sample)
        for sample in benchmark.samples
        if sample.id in answers and _same(answers[sample.id].get("sample"), sample.digest)
    ]
    path = folder / "verdicts.jsonl"
    write_file(path, "".join(json.dumps(verdict.to_json()) + "\n" for verdict in verdicts), 0o666)
    return verdicts


def _same(one: str | None, other: str) -> bool:
    """Whether two hashes of a sample are equal. True if a hash is unknown (imported answers, missing pictures)."""
    return not one or not other or one == other


def baseline_of(verdicts: Iterable[Verdict], rows: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    """Return, for each sample that is the same in both, whether the baseline is right."""
    return {
        one.sample.id: bool(row["right"])
        for one in verdicts
        if (row := rows.get(one.sample.id)) is not None and _same(row.get("sample"), one.sample.digest)
    }


def read_verdicts(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the verdicts in a folder by sample. Raises UsageError."""
    try:
        rows = [json.loads(line) for line in (folder / "verdicts.jsonl").read_bytes().splitlines()]
        return {row["id"]: {"right": row["right"], "sample": row.get("sample")} for row in rows}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{folder} holds no verdicts to compare with ({error}).", f"`mai-agent eval rescore {folder}` makes them."
        ) from error


def import_answers(file: Path, benchmark: Benchmark, run: Mapping[str, Any], out: Path) -> int:
    """Keep the `raw_response` of each row as the answer to the sample of its id. Return how many were kept.

    The file is JSON lines, a list, or an object with `details`. Raises UsageError: a row cannot be used, the
    folder holds another answer, or the family counts in pixels of pictures whose size is not published.
    """
    if isinstance(get_family(run["family"]).facts.grounding, str):
        raise UsageError(f"The family {run['family']} counts in pixels of pictures whose size the answers do not tell.")
    samples = {sample.id: sample for sample in benchmark.samples}
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read ({error}).", "Name a file of answers.") from error
    try:
        with AnswersFile(out, run) as kept:
            lines, earlier = [], dict[str, Any]()
            for row in _rows(text):
                sample, response = samples[str(row["id"])], row["raw_response"]
                size = list(row["img_size"]) if sample.size is None else [sample.size.width, sample.size.height]
                if not isinstance(response, str):
                    raise TypeError(f"the answer to {sample.id} is not text")
                line = {"id": sample.id, "request": "imported", **run, "screen": size, "sent": size}
                answer = {"content": response, "finish_reason": "stop"}
                if earlier.setdefault(sample.id, answer) != answer:
                    raise UsageError(f"{file} holds two answers to {sample.id}.", "Keep one of them.")
                if sample.id in kept.answers and kept.answers[sample.id]["answer"] != answer:
                    raise UsageError(f"{out} holds another answer to {sample.id}.", "Name another folder with --out.")
                lines.append({**line, "answer": answer})
            for line in lines:
                kept.append(line)
            return len(kept.answers)
    except KeyError as error:
        raise UsageError(f"{file} has no {error}, or the benchmark has no such sample.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} cannot be used: {error}.", "Is it a file of answers?") from error


def _rows(text: str) -> list[Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    if isinstance(document, dict):
        return list(document["details"]) if "details" in document else [document]
    return list(document)
