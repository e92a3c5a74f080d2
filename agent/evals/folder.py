"""The folder of an evaluation: `eval.json`, `answers.jsonl` and `verdicts.jsonl`.

An answer is one line, appended and flushed. A process that is killed at any byte leaves at most a broken last line,
which the next process drops.
"""

import json
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Self

from agent.evals.judging import Verdict, judge
from agent.evals.samples import Benchmark
from foundation.errors import UsageError
from foundation.files import cannot_write, read_json_object, write_file

#: What must be the same in a folder; the rest of a request is in its hash.
_SAME = ("benchmark", "model", "family", "words")


def read_answers(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the answers by sample; a later answer to a sample replaces an earlier one. Raises UsageError."""
    answers: dict[str, dict[str, Any]] = {}
    try:
        lines = (folder / "answers.jsonl").read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{folder} cannot be read ({error.strerror}).", "Name the folder of an evaluation.") from error
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            break
        try:
            answer = json.loads(line)
            answers[answer["id"]] = answer
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UsageError(
                f"Line {number} of {folder / 'answers.jsonl'} is no answer.", "Remove the line: it is asked again."
            ) from error
    return answers


class AnswersFile:
    """The answers of one run of a model over a benchmark; a context manager, which locks the file."""

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        self._folder = folder
        self._run = dict(run)
        self._file: FileIO | None = None
        self.answers: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        """Open the folder, and drop a broken last line. Raises MaiError: it is another run's, or cannot be written."""
        path = self._folder / "answers.jsonl"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = FileIO(path, "a+")
            _lock(self._file, path)
            self._check_run()
            self.answers = read_answers(self._folder)
            content = path.read_bytes()
            self._file.truncate(content.rfind(b"\n") + 1)
        except OSError as error:
            self.__exit__()
            raise cannot_write(path, error) from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()  # and so unlock it

    def append(self, answer: Mapping[str, Any]) -> None:
        """Write an answer. Raises OSError."""
        assert self._file is not None, "use it in a with block"
        line = memoryview((json.dumps(answer, ensure_ascii=True) + "\n").encode())
        while line:
            line = line[self._file.write(line) or 0 :]
        self.answers[answer["id"]] = dict(answer)

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
    """Judge the answers to a benchmark's samples, in its order, and write the verdicts. Raises MaiError."""
    verdicts = [judge(answers[sample.id], sample) for sample in benchmark.samples if sample.id in answers]
    path = folder / "verdicts.jsonl"
    write_file(path, "".join(json.dumps(verdict.to_json()) + "\n" for verdict in verdicts), 0o666)
    return verdicts


def read_verdicts(folder: Path) -> dict[str, bool]:
    """Return by sample whether a folder's answer is right, by the official rule. Raises UsageError."""
    try:
        rows = [json.loads(line) for line in (folder / "verdicts.jsonl").read_bytes().splitlines()]
        return {row["id"]: bool(row["right"]) for row in rows}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{folder} holds no verdicts to compare with ({error}).", f"`mai-agent eval rescore {folder}` makes them."
        ) from error


def _lock(file: FileIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"Another evaluation is writing to {path}.", "Wait for it, or name another --out.") from error
    except OSError:  # a network file system without locks
        return
