"""`mai-agent eval`: answers are kept as they come, asked once, resumed after any end, and judged again at will."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine
from PIL import Image
from stubs.benchmarks import MADE_UP
from stubs.endpoint import FakeEndpoint, refuse, say, texts

from agent.evals.folder import AnswersFile, read_answers
from foundation.errors import UsageError

INSIDE, OUTSIDE, REFUSED = (
    f'<grounding_think>I look.</grounding_think>\n<answer>{{"coordinate":[{place}]}}</answer>'
    for place in ("200,200", "900,900", "-1,-1")
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """OSWorld-G with a box, a polygon and an absent target."""
    MADE_UP["osworld-g"].make(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def evaluated(
    mai: CommandLine, endpoint: FakeEndpoint, data: Path, out: Path, *more: str, name: str = "osworld-g"
) -> dict[str, Any]:
    ran = mai("eval", "grounding", name, str(data), "--out", str(out), "--endpoint", endpoint.url,
              "--at-once", "1", "--json", *more)  # fmt: skip
    assert ran.status == 0, ran.err
    told: dict[str, Any] = json.loads(ran.out)
    return told


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_benchmark_is_asked_judged_and_told(mai: CommandLine, data: Path, out: Path) -> None:
    with FakeEndpoint([say(INSIDE), say(OUTSIDE), say(REFUSED)]) as endpoint:
        told = evaluated(mai, endpoint, data, out)
    assert [texts(request, "user") for request in endpoint.requests] == [
        ["the bbox\n"], ["the polygon\n"], ["the refusal\n"],
    ]  # fmt: skip
    assert (told["samples"], told["answered"], told["unreadable"]) == (3, 3, 0)
    assert (told["headline"]["right"], told["headline"]["count"]) == (2, 3)
    assert told["rules"]["official"] == told["score"] == pytest.approx(2 / 3)
    assert told["refusals"]["without"]["share"] == 0.5
    assert (told["refusals"]["refused"]["right"], told["refusals"]["false"]) == (1, 0)
    assert [entry["figure"] for entry in told["published"]] == [60.1, 61.7, 63.23]
    first = rows(out / "answers.jsonl")[0]
    assert first["answer"]["content"] == INSIDE
    assert (first["family"], first["model"], first["words"]) == ("mai-ui", "MAI-UI-8B", "ours")
    assert (first["screen"], first["tokens"]["prompt"], first["tokens"]["completion"]) == ([200, 100], 100, 10)
    assert first["ms"] > 0
    assert first["sent"][0] * first["sent"][1] >= 65_536  # the family's least
    assert [row["right"] for row in rows(out / "verdicts.jsonl")] == [True, False, True]


def test_the_table_is_short_and_names_rules_intervals_and_published_figures(
    mai: CommandLine, data: Path, out: Path
) -> None:
    with FakeEndpoint([say(INSIDE), say("I do not know."), say(INSIDE)]) as endpoint:
        evaluated(mai, endpoint, data, out)
    table = mai("eval", "rescore", str(out)).out.splitlines()
    assert table[0] == "OSWorld-G: MAI-UI-8B (family mai-ui, words: ours)"
    assert " ".join(table[1].split()) == "official rule, all 1 of 3 33.33 % 95 %: 6.1 to 79.2"
    assert "answers without a point or a refusal: 1" in table
    assert "published (publisher, MAI-UI's polygons): 60.1 %; here 33.3 %" in table
    assert "published (ClawGUI, int() pixels, without refusals): 63.2 %; here 50.0 %" in table
    assert len(table) < 20


def test_a_closer_look_is_asked_in_a_crop_and_counts_in_a_column_of_its_own(
    mai: CommandLine, data: Path, out: Path
) -> None:
    near, middle = (f'<answer>{{"coordinate":[{place}]}}</answer>' for place in ("310,310", "300,300"))
    with FakeEndpoint([say(near), say(REFUSED), say(REFUSED), say(middle)]) as endpoint:
        first = evaluated(mai, endpoint, data, out)
        told = evaluated(mai, endpoint, data, out, "--zoom")
        again = evaluated(mai, endpoint, data, out, "--zoom")
    assert len(endpoint.requests) == 4  # what refused has no place to look at; first answers are not asked for again
    assert first["score"] == told["score"] == pytest.approx(1 / 3)
    assert told["headline"]["zoom"] == told["rules"]["zoom"] == pytest.approx(2 / 3)
    assert again == told
    # Half of each side around 62, 31, and 0.3 of it.
    [line] = [one for one in map(json.loads, (out / "answers.jsonl").read_text().splitlines()) if one.get("zoom")]
    assert line["zoom"]["crop"] == [12, 6, 100, 50]
    assert rows(out / "verdicts.jsonl")[0]["closer"] == [42, 21]
    assert "zoom: 66.67 %" in mai("eval", "rescore", str(out)).out


def test_an_answer_is_never_asked_for_twice(mai: CommandLine, data: Path, out: Path) -> None:
    with FakeEndpoint([say(INSIDE)] * 3) as endpoint:
        part = evaluated(mai, endpoint, data, out, "--limit", "2")
        whole = evaluated(mai, endpoint, data, out)
        again = evaluated(mai, endpoint, data, out)
    assert (part["answered"], part["samples"]) == (2, 3)
    assert whole == again
    assert len(endpoint.requests) == 3


def test_another_picture_or_instruction_is_another_request(mai: CommandLine, data: Path, out: Path) -> None:
    with FakeEndpoint([say(OUTSIDE)] * 3 + [say(INSIDE)] * 4) as endpoint:
        evaluated(mai, endpoint, data, out)
        Image.new("RGB", (200, 100), "black").save(data / "images" / "a.png")
        assert evaluated(mai, endpoint, data, out)["headline"]["right"] == 2
        rows_file = data / "OSWorld-G.json"
        rows_file.write_text(rows_file.read_text().replace("the polygon", "the wedge"))
        evaluated(mai, endpoint, data, out)
    assert len(endpoint.requests) == 7


def test_answers_of_other_settings_and_other_models_are_named(mai: CommandLine, data: Path, out: Path) -> None:
    Image.new("RGB", (2000, 1500)).save(data / "images/a.png")
    command = ("eval", "grounding", "osworld-g", str(data), "--out", str(out), "--at-once", "1")
    with FakeEndpoint([say(INSIDE)] * 5) as endpoint:
        assert "other settings" not in mai(*command, "--endpoint", endpoint.url).err
        ran = mai(*command, "--endpoint", endpoint.url, "--limit", "2", "--max-pixels", "300000")
    assert "1 of 3 answers were asked for with other settings" in ran.err
    answers = (out / "answers.jsonl").read_text()
    (out / "answers.jsonl").write_text(answers.replace('"model": "MAI-UI-8B"', '"model": "Other"', 1))
    assert "Not all answers are of one model" not in mai("eval", "rescore", str(out)).err, "that one was asked again"
    (out / "answers.jsonl").write_text(answers.replace('"model": "MAI-UI-8B"', '"model": "Other"'))
    assert "there is Other beside MAI-UI-8B" in mai("eval", "rescore", str(out)).err


def test_shards_together_are_the_whole(mai: CommandLine, data: Path, out: Path) -> None:
    with FakeEndpoint([say(INSIDE)] * 3) as endpoint:
        shards = [out / str(number) for number in (1, 2)]
        for number, shard in enumerate(shards, 1):
            evaluated(mai, endpoint, data, shard, "--shard", f"{number}/2")
    parts = [(shard / "answers.jsonl").read_bytes() for shard in shards]
    assert [part.count(b"\n") for part in parts] == [2, 1]
    (shards[0] / "answers.jsonl").write_bytes(b"".join(parts))
    assert json.loads(mai("eval", "rescore", str(shards[0]), "--json").out)["answered"] == 3


def test_a_run_broken_off_at_any_byte_is_resumed_to_the_same_verdicts(mai: CommandLine, data: Path, out: Path) -> None:
    answers = [INSIDE, OUTSIDE, REFUSED]

    def script(_: int) -> Any:
        return lambda exchange: say(answers[ORDER.index(texts(exchange.body, "user")[0])])(exchange)

    with FakeEndpoint(script) as endpoint:
        evaluated(mai, endpoint, data, out)
        whole, verdicts = (out / "answers.jsonl").read_bytes(), (out / "verdicts.jsonl").read_bytes()
        first = whole.index(b"\n")
        # A line is whole without its line end, too.
        for cut, kept in ((0, 0), (1, 0), (first - 1, 0), (first, 1), (first + 1, 1), (len(whole) - 2, 2)):
            (out / "answers.jsonl").write_bytes(whole[:cut])
            asked = len(endpoint.requests)
            evaluated(mai, endpoint, data, out)
            assert len(endpoint.requests) - asked == 3 - kept
            assert (out / "verdicts.jsonl").read_bytes() == verdicts


ORDER = ["the bbox\n", "the polygon\n", "the refusal\n"]


def test_two_processes_do_not_write_to_one_folder_and_a_spoilt_line_is_named(tmp_path: Path) -> None:
    with AnswersFile(tmp_path, {}), pytest.raises(UsageError, match="Another evaluation"):
        AnswersFile(tmp_path, {})
    (tmp_path / "answers.jsonl").write_bytes(b'{"id": "a"}\n{"is"\n{"id": "b"}\n')
    with pytest.raises(UsageError, match="line 2 is not an answer"):
        read_answers(tmp_path)


def test_a_server_that_goes_leaves_what_was_answered(mai: CommandLine, data: Path, out: Path) -> None:
    def script(number: int) -> Any:
        if number == 1:
            return refuse(401, "Unauthorized")
        return say(INSIDE)

    command = ("eval", "grounding", "osworld-g", str(data), "--out", str(out), "--at-once", "1")
    with FakeEndpoint(script) as endpoint:
        ran = mai(*command, "--endpoint", endpoint.url)
        assert ran.status != 0
        assert "refuses the key" in ran.err
        assert len(rows(out / "answers.jsonl")) == 1
        assert evaluated(mai, endpoint, data, out)["answered"] == 3


def test_a_sample_that_the_server_refuses_does_not_end_the_rest(mai: CommandLine, data: Path, out: Path) -> None:
    with FakeEndpoint([refuse(400, "no such thing"), say(INSIDE), say(INSIDE), say(INSIDE)]) as endpoint:
        ran = mai("eval", "grounding", "osworld-g", str(data), "--out", str(out), "--at-once", "1",
                  "--endpoint", endpoint.url)  # fmt: skip
        assert ran.status == 1
        assert "A-0: no answer" in ran.err
        assert " ".join(ran.out.splitlines()[1].split()).startswith("official rule, all 1 of 3")  # as scorers count it
        assert "1 requests got no answer (refused, too long, endless)" in ran.err
        assert evaluated(mai, endpoint, data, out)["score"] == pytest.approx(2 / 3)  # it is asked for again
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize("fault", ["its request", "its picture"])
def test_a_sample_that_fails_alone_does_not_end_the_rest(mai: CommandLine, data: Path, out: Path, fault: str) -> None:
    script = [say(INSIDE)] * 2
    if fault == "its request":
        script = [refuse(500, "out of order")] * 3 + script  # each is tried three times
    else:
        picture, rows = data / "images/a.png", json.loads((data / "OSWorld-G.json").read_text())
        (data / "images/cut.png").write_bytes(picture.read_bytes()[:60])
        (data / "OSWorld-G.json").write_text(json.dumps([{**rows[0], "image_path": "cut.png"}, *rows[1:]]))
    with FakeEndpoint(script) as endpoint:
        ran = mai("eval", "grounding", "osworld-g", str(data), "--out", str(out), "--at-once", "1",
                  "--endpoint", endpoint.url)  # fmt: skip
    assert ran.status == 1, ran.err
    assert ran.err.count("no answer") == 1
    assert "answered: 2 of 3 samples" in ran.out


def test_a_server_that_fails_again_and_again_ends_it(mai: CommandLine, data: Path, out: Path) -> None:
    with FakeEndpoint([refuse(500, "out of order")] * 6) as endpoint:
        ran = mai("eval", "grounding", "osworld-g", str(data), "--out", str(out), "--at-once", "1",
                  "--endpoint", endpoint.url)  # fmt: skip
    assert ran.status == 3
    assert "status 500" in ran.err


def test_refusals_in_a_row_are_wrong_answers_and_replace_no_answer(mai: CommandLine, data: Path, out: Path) -> None:
    command = ("eval", "grounding", "osworld-g", str(data), "--out", str(out), "--at-once", "1", "--json")
    refused = refuse(400, "content filter")
    with FakeEndpoint([say(INSIDE), refused, refused, refused, refused, refused]) as endpoint:
        ran = mai(*command, "--endpoint", endpoint.url)
        assert (ran.status, json.loads(ran.out)["answered"]) == (1, 3)
        # The first one is asked for again, with other settings: its answer stays.
        ran = mai(*command, "--endpoint", endpoint.url, "--max-pixels", "300000")
    assert (ran.status, json.loads(ran.out)["headline"]["right"]) == (1, 1)
    with FakeEndpoint([refused] * 3) as endpoint:  # all from the beginning: it is set up wrongly
        assert mai(*command[:-1], "--endpoint", endpoint.url, "--out", str(out.with_name("new"))).status == 3


def test_a_closer_look_that_is_refused_leaves_the_first_point(mai: CommandLine, data: Path, out: Path) -> None:
    near = '<answer>{"coordinate":[310,310]}</answer>'
    with FakeEndpoint([say(near), refuse(400, "content filter"), say(REFUSED), say(REFUSED)]) as endpoint:
        ran = mai("eval", "grounding", "osworld-g", str(data), "--out", str(out), "--at-once", "1", "--json",
                  "--zoom", "--endpoint", endpoint.url)  # fmt: skip
    told = json.loads(ran.out)
    assert (ran.status, told["answered"]) == (1, 3)
    assert told["rules"]["zoom"] == told["rules"]["official"]


def test_answers_and_baselines_of_another_set_with_the_same_ids_are_left_out(
    mai: CommandLine, data: Path, tmp_path: Path
) -> None:
    with FakeEndpoint([say(INSIDE)] * 3) as endpoint:
        evaluated(mai, endpoint, data, tmp_path / "base")
    other = tmp_path / "other"
    shutil.copytree(data, other)
    samples = json.loads((other / "OSWorld-G.json").read_text())
    samples[0]["instruction"] = "another thing"
    (other / "OSWorld-G.json").write_text(json.dumps(samples))
    ran = mai("eval", "rescore", str(tmp_path / "base"), "--data", str(other), "--json")
    told = json.loads(ran.out)
    assert (told["answered"], told["samples"]) == (2, 3)
    assert told["notes"] == ["1 answers are to other samples than the benchmark's; they are left out."]
    assert [entry["ours"] for entry in told["published"]] == [None] * 3, "a part is not set beside the whole"
    with FakeEndpoint([say(INSIDE)] * 3) as endpoint:
        told = evaluated(mai, endpoint, other, tmp_path / "new", "--baseline", str(tmp_path / "base"))
    assert told["baseline"]["left_out"] == 1


def test_a_system_text_for_runs_is_refused(mai: CommandLine, data: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("Be brief.")
    with FakeEndpoint([say(INSIDE)]) as endpoint:
        ran = mai("eval", "grounding", "osworld-g", str(data), "--out", str(out), "--endpoint", endpoint.url,
                  "--system-prompt", str(tmp_path / "mine.txt"))  # fmt: skip
    assert (ran.status, "--system-prompt is for runs" in ran.err) == (2, True)


def test_two_models_are_compared_sample_by_sample(mai: CommandLine, data: Path, tmp_path: Path) -> None:
    with FakeEndpoint([say(INSIDE)] * 3 + [say(OUTSIDE), say(OUTSIDE), say(REFUSED)]) as endpoint:
        evaluated(mai, endpoint, data, tmp_path / "base")
        told = evaluated(mai, endpoint, data, tmp_path / "new", "--baseline", str(tmp_path / "base"))
    expected = {"both": 0, "only_here": 1, "only_baseline": 2, "neither": 0, "left_out": 0, "p": 1.0}
    assert told["baseline"] == expected
    table = mai("eval", "rescore", str(tmp_path / "new"), "--baseline", str(tmp_path / "base")).out
    assert "1 right only here, 2 only there, 0 alike; McNemar's p = 1" in table
    (tmp_path / "base/eval.json").write_text('{"benchmark": "screenspot"}')
    ran = mai("eval", "rescore", str(tmp_path / "new"), "--baseline", str(tmp_path / "base"))
    assert (ran.status, "is of screenspot, not of osworld-g" in ran.err) == (2, True)


def test_the_mean_over_subsets_is_the_score_where_the_publisher_says_so(
    mai: CommandLine, tmp_path: Path, out: Path
) -> None:
    MADE_UP["ui-vision"].make(tmp_path)
    with FakeEndpoint([say(INSIDE), say(OUTSIDE), say(INSIDE), say(OUTSIDE)]) as endpoint:
        told = evaluated(mai, endpoint, tmp_path, out, name="ui-vision")
    assert told["score"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert told["headline"]["share"] == 0.5
    assert "mean over each subset" in mai("eval", "rescore", str(out)).out


@pytest.mark.parametrize("form", ["lines", "list", "details"])
def test_published_answers_are_taken_over_and_judged(mai: CommandLine, data: Path, out: Path, form: str) -> None:
    results = [{"id": f"A-{number}", "raw_response": text} for number, text in enumerate((INSIDE, "", REFUSED))]
    file = data / "results.json"
    written = {"lines": "\n".join(map(json.dumps, results)), "list": json.dumps(results)}
    file.write_text(written.get(form, json.dumps({"details": results, "metrics": {}})))
    command = ("eval", "import", "osworld-g", str(data), str(file), "--out", str(out), "--json")
    told = json.loads(mai(*command, "--model", "MAI-UI-8B").out)
    assert (told["answered"], told["headline"]["right"], told["unreadable"]) == (3, 2, 1)
    assert json.loads(mai("eval", "rescore", str(out), "--json").out) == told
    for model, complaint in (("gpt-unheard-of", "no known family"), ("UI-TARS-1.5-7B", "counts in pixels")):
        assert complaint in mai(*command, "--model", model).err
    assert json.loads(mai(*command, "--model", "MAI-UI-8B").out) == told
    file.write_text(json.dumps({"id": "A-0", "raw_response": OUTSIDE}))
    assert "holds another answer to A-0" in mai(*command, "--model", "MAI-UI-8B").err
    file.write_text('{"id": "B-1", "raw_response": ""}')
    assert "has no 'B-1', or the benchmark" in mai(*command, "--model", "MAI-UI-8B").err


def _mistakes() -> Iterator[tuple[list[str], str]]:
    yield ["grounding", "screenspot-pro", "DATA", "--out", "OUT"], "holds no ScreenSpot-Pro"
    yield ["grounding", "osworld-g", "DATA", "--out", "OUT", "--baseline", "BASE"], "is not the folder of an evaluation"
    yield ["grounding", "osworld-g", "DATA", "--out", "OUT", "--shard", "3/2"], "is no shard such as 1/4"
    yield ["grounding", "osworld-g", "DATA", "--out", "OUT", "--family", "os-atlas"], "of another family"
    yield ["grounding", "nothing", "DATA", "--out", "OUT"], "invalid choice"
    yield ["rescore", "BASE"], "is not the folder of an evaluation"


@pytest.mark.parametrize(("arguments", "complaint"), list(_mistakes()))
def test_what_is_wrong_is_said_before_anything_is_asked(
    mai: CommandLine, data: Path, out: Path, arguments: list[str], complaint: str
) -> None:
    places = {"DATA": str(data), "OUT": str(out), "BASE": str(out / "none")}
    out.mkdir()
    (out / "eval.json").write_text(json.dumps({"benchmark": "osworld-g", "model": "MAI-UI-8B", "family": "mai-ui"}))
    with FakeEndpoint([]) as endpoint:
        more = ["--endpoint", endpoint.url] if arguments[0] == "grounding" else []
        ran = mai("eval", *(places.get(word, word) for word in arguments), *more)
    assert ran.status in (2, 3)
    assert complaint in " ".join(ran.err.split())
    assert endpoint.requests == []


def test_a_missing_picture_is_named_before_anything_is_asked(mai: CommandLine, data: Path, out: Path) -> None:
    (data / "images" / "a.png").unlink()
    command = ("eval", "grounding", "osworld-g", str(data), "--out", str(out))
    with FakeEndpoint([]) as endpoint:
        ran = mai(*command, "--endpoint", endpoint.url)
    assert (ran.status, endpoint.requests) == (3, [])
    assert "There is no picture" in ran.err
