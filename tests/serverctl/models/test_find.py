"""A model is found by what a person writes: a folder, a known name, a repository; from this disk before the network."""

import json
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from serverctl.models.find import cache_folder, cached_snapshot, downloaded_bytes, find_model, known_models, whole_name

ROOT = Path(__file__).resolve().parents[3]
CONFIG = json.loads((ROOT / "configs/models/shapes/qwen3-vl-2b.json").read_text(encoding="utf-8"))
PIXELS = {"size": {"shortest_edge": 65_536, "longest_edge": 4_194_304}}


def write(folder: Path, **files: Any) -> Path:
    """A model's folder; a dict is written as JSON, a number as that many bytes; double underscores are dots."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name.replace("__", ".").replace("_of_", "-of-").replace("model_0", "model-0")
        if isinstance(content, int):
            path.write_bytes(b"\0" * content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def cache(hub_cache: Path, repo: str, revision: str = "abc", **files: Any) -> Path:
    """A repository as the hub's client keeps it."""
    folder = hub_cache / f"models--{repo.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    (folder / "refs" / "main").write_text(revision)
    return write(folder / "snapshots" / revision, **files)


def index(size: Any, *names: str) -> dict[str, Any]:
    return {"metadata": {"total_size": size}, "weight_map": {f"w{n}": name for n, name in enumerate(names)}}


class TestKnownNames:
    @pytest.mark.parametrize(
        "name", ["MAI-UI-2B", "mai-ui-2b", "Mai-Ui-2B", "Tongyi-MAI/MAI-UI-2B", "tongyi-mai/mai-ui-2b"]
    )
    def test_in_any_case_and_by_their_repository(self, name: str) -> None:
        model = find_model(name, allow_network=False)
        assert (model.name, model.source, model.family) == ("MAI-UI-2B", "Tongyi-MAI/MAI-UI-2B", "mai-ui")
        assert model.local is None
        assert model.origin == "configs/models/shapes/qwen3-vl-2b.json"
        assert (model.min_pixels, model.max_pixels, model.factor) == (65_536, 16_777_216, 32)

    @pytest.mark.parametrize(
        "name", ["Qwen/Qwen2.5-VL-7B-Instruct-AWQ", "qwen2.5-vl-7b-instruct-awq", "QWEN/QWEN2.5-VL-7B-INSTRUCT-AWQ"]
    )
    def test_their_published_checkpoints_are_found_likewise(self, name: str) -> None:
        model = find_model(name, allow_network=False)
        assert (model.name, model.source) == ("Qwen2.5-VL-7B-Instruct-AWQ", "Qwen/Qwen2.5-VL-7B-Instruct-AWQ")
        assert (model.own_precision, model.family, model.history_images) == ("w4", "qwen2.5-vl", 5)
        assert model.weight_bytes("w4") < find_model("Qwen2.5-VL-7B-Instruct").weight_bytes("16-bit") / 2

    @pytest.mark.parametrize(
        ("name", "told"),
        [("MAI-UI-8", "MAI-UI-8B"), ("mai ui 2b", "MAI-UI-2B"), ("qwen3-vl-8b-instuct", "Qwen3-VL-8B-Instruct"),
         ("zzzzzz", "MAI-UI-8B"), (" \t", "a repository or a folder")],
    )  # fmt: skip
    def test_a_slip_of_the_pen_is_answered_with_near_names_and_others_with_all(self, name: str, told: str) -> None:
        with pytest.raises(UsageError) as refusal:
            find_model(name)
        assert told in refusal.value.remedy
        assert "org/name" in refusal.value.remedy or not name.strip()

    @pytest.mark.parametrize("name", [entry.name for entry in known_models()])
    def test_all_of_them_are_found_without_network_and_disk(self, name: str) -> None:
        model = find_model(name, allow_network=False)
        assert (model.name, model.source.count("/"), model.own_precision) == (name, 1, "16-bit")

    def test_an_unknown_repository_is_not_looked_up_where_the_network_is_not_allowed(self) -> None:
        with pytest.raises(EnvironmentLacksError, match="not on this disk"):
            find_model("somebody/something", allow_network=False)


class TestFolders:
    def test_a_folder_is_taken_as_it_is(self, tmp_path: Path) -> None:
        folder = write(
            tmp_path / "my-model", config__json=CONFIG, preprocessor_config__json=PIXELS, model__safetensors=128
        )
        for name in (str(folder), "my-model", "./my-model"):
            model = find_model(name)
            assert (model.name, model.source, model.local) == ("my-model", str(folder), folder)
            assert model.max_pixels == 4_194_304
            assert model.checkpoint_bytes == 128
            assert (model.family, model.history_images) == (None, 3)
            assert model.origin == f"{folder}/config.json"

    def test_one_named_like_a_known_model_has_that_models_family(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "mai-ui-2b", config__json=CONFIG)
        model = find_model(str(folder))
        assert (model.family, model.source) == ("mai-ui", str(folder))

    def test_one_that_only_has_a_known_models_name_does_not_hide_the_model(self, tmp_path: Path) -> None:
        (tmp_path / "MAI-UI-8B").mkdir()
        assert find_model("MAI-UI-8B").source == "Tongyi-MAI/MAI-UI-8B"

    def test_one_without_a_config_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        for name in ("empty", "./empty", str(tmp_path / "empty")):
            with pytest.raises(UsageError, match=r"has no config\.json"):
                find_model(name)

    def test_a_config_with_a_mark_at_its_beginning_is_read(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "m", config__json="\ufeff" + json.dumps(CONFIG))
        assert find_model(str(folder)).shape.parameters == 2_127_532_032

    @pytest.mark.parametrize("metadata", [None, [], {}, {"total_size": None}, {"total_size": "x"}, {"total_size": -5}])
    def test_an_index_that_does_not_say_its_size_costs_only_that(self, tmp_path: Path, metadata: Any) -> None:
        folder = write(tmp_path / "m", config__json=CONFIG, model__safetensors__index__json={"metadata": metadata})
        assert find_model(str(folder)).checkpoint_bytes is None

    def test_one_that_may_not_be_read_is_told_as_that(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = write(tmp_path / "closed", config__json=CONFIG)

        def refuse(path: Path) -> bool:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "is_file", refuse)  # the tests may run as root, who may read everything
        with pytest.raises(EnvironmentLacksError, match="may not be read") as refusal:
            find_model(str(folder))
        assert f"chmod u+rx {folder}" in refusal.value.remedy

    @pytest.mark.parametrize(
        "name", ["/no/such/folder", "./nothing", "../nothing", "~/nothing", "~nobody-of-this-name/x", "a/b/nothing"]
    )
    def test_one_that_is_not_there_is_no_repository(self, name: str) -> None:
        with pytest.raises(UsageError, match="There is no folder"):
            find_model(name)

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000, "\x00\xff"])
    def test_a_broken_config_is_named(self, tmp_path: Path, text: str) -> None:
        folder = write(tmp_path / "m", config__json=text)
        with pytest.raises(EnvironmentLacksError, match=r"config\.json"):
            find_model(str(folder))

    @pytest.mark.parametrize(
        ("files", "pixels"),
        [
            ({}, (65_536, 16_777_216)),
            ({"preprocessor_config__json": {"min_pixels": 3136, "max_pixels": 12_845_056}}, (3136, 12_845_056)),
            ({"preprocessor_config__json": {"size": {"height": 224, "width": 224}}}, (65_536, 16_777_216)),
            (
                {"preprocessor_config__json": {"size": {"longest_edge": None}, "max_pixels": "many"}},
                (65_536, 16_777_216),
            ),
            ({"preprocessor_config__json": {"size": {"shortest_edge": 9e9, "longest_edge": 99_999}}}, (99_999, 99_999)),
            ({"processor_config__json": {"image_processor": PIXELS}}, (65_536, 4_194_304)),
            ({"processor_config__json": {"image_processor": None}}, (65_536, 16_777_216)),
        ],
    )
    def test_the_limits_of_an_image_are_read_wherever_they_are_written(
        self, tmp_path: Path, files: dict[str, Any], pixels: tuple[int, int]
    ) -> None:
        model = find_model(str(write(tmp_path / "m", config__json=CONFIG, **files)))
        assert (model.min_pixels, model.max_pixels) == pixels


INDEXED = {"model__safetensors__index__json": index(24, "a.safetensors", "b.safetensors")}


class TestTheHubsCache:
    def test_what_was_downloaded_is_used_before_anything_else(self, hub_cache: Path) -> None:
        other = {**CONFIG, "text_config": {**CONFIG["text_config"], "num_hidden_layers": 30}}
        folder = cache(hub_cache, "Tongyi-MAI/MAI-UI-2B", config__json=other, preprocessor_config__json=PIXELS)
        model = find_model("MAI-UI-2B")
        assert model.shape.text.layers == 30
        assert model.max_pixels == 4_194_304
        assert (model.name, model.family, model.source) == ("MAI-UI-2B", "mai-ui", "Tongyi-MAI/MAI-UI-2B")
        assert model.local is None, "no weights are there yet"
        assert cached_snapshot("Tongyi-MAI/MAI-UI-2B") == folder

    def test_a_repository_nobody_listed_is_found_there_without_network_by_its_newest_revision(
        self, hub_cache: Path
    ) -> None:
        cache(hub_cache, "o/m", "old", config__json={**CONFIG, "tie_word_embeddings": False})
        names = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
        new = cache(
            hub_cache, "o/m", "new", config__json=CONFIG, model__safetensors__index__json=index(4_255_140_312, *names)
        )
        model = find_model("o/m", allow_network=False)
        assert (model.name, model.source, model.family) == ("m", "o/m", None)
        assert (model.checkpoint_bytes, cached_snapshot("o/m")) == (4_255_140_312, new)

    def test_a_link_to_a_file_that_is_gone_is_no_weight(self, hub_cache: Path) -> None:
        folder = cache(hub_cache, "Tongyi-MAI/MAI-UI-2B", config__json=CONFIG)
        (folder / "model.safetensors").symlink_to(folder / "gone")
        assert find_model("MAI-UI-2B").local is None

    def test_a_download_that_has_not_come_as_far_as_the_config_is_not_there(self, hub_cache: Path) -> None:
        cache(hub_cache, "Tongyi-MAI/MAI-UI-2B")
        assert cached_snapshot("Tongyi-MAI/MAI-UI-2B") is None
        assert find_model("MAI-UI-2B").origin.startswith("configs/")

    def test_a_checkpoint_found_there_keeps_its_own_name_and_its_models_family(self, hub_cache: Path) -> None:
        quantised = {**CONFIG, "quantization_config": {"quant_method": "awq", "bits": 4}}
        cache(hub_cache, "Qwen/Qwen2.5-VL-7B-Instruct-AWQ", config__json=quantised)
        model = find_model("Qwen/Qwen2.5-VL-7B-Instruct-AWQ")
        assert (model.name, model.family, model.own_precision) == ("Qwen2.5-VL-7B-Instruct-AWQ", "qwen2.5-vl", "w4")

    @pytest.mark.parametrize(
        ("files", "whole"),
        [
            ({}, False),
            ({"model__safetensors": 8}, True),
            ({**INDEXED, "a__safetensors": 8}, False),
            ({**INDEXED, "a__safetensors": 8, "b__safetensors": 16}, True),
            ({"model__safetensors__index__json": {"weight_map": []}, "a__safetensors": 8}, False),
            ({"model_00001_of_00002__safetensors": 8}, False),
            ({"model_00001_of_00002__safetensors": 8, "model_00002_of_00002__safetensors": 8}, True),
        ],
    )
    def test_weights_count_as_there_only_when_they_are_whole(
        self, hub_cache: Path, files: dict[str, Any], whole: bool
    ) -> None:
        folder = cache(hub_cache, "Tongyi-MAI/MAI-UI-2B", config__json=CONFIG, **files)
        assert find_model("MAI-UI-2B").local == (folder if whole else None)

    def test_bytes_of_a_download_are_counted_parts_included(self, hub_cache: Path) -> None:
        write(hub_cache / "models--o--m" / "blobs", whole=100, part__incomplete=20)
        assert downloaded_bytes("o/m") == 120
        assert downloaded_bytes("o/other") == 0

    @pytest.mark.parametrize(
        ("environ", "folder"),
        [
            ({"HF_HUB_CACHE": "/a"}, "/a"),
            ({"HUGGINGFACE_HUB_CACHE": "/b"}, "/b"),
            ({"HF_HOME": "/c"}, "/c/hub"),
            ({"XDG_CACHE_HOME": "/d"}, "/d/huggingface/hub"),
            ({"HF_HUB_CACHE": "~/e"}, f"{Path.home()}/e"),
            ({}, f"{Path.home()}/.cache/huggingface/hub"),
        ],
    )
    def test_it_is_where_the_hubs_client_keeps_it(
        self, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], folder: str
    ) -> None:
        monkeypatch.delenv("HF_HUB_CACHE")
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        assert str(cache_folder()) == folder


def hub_error(kind: type[Exception]) -> Exception:
    """An error as the hub's client raises it, without the HTTP response that its own making wants."""
    error = kind.__new__(kind)
    Exception.__init__(error, "said the hub")
    return error


class TestTheHub:
    @pytest.fixture
    def answers(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
        """What the hub gives for a file: content, or an exception."""
        files: dict[str, Any] = {}

        def download(repo: str, file: str) -> str:
            answer = files.get(file, files.get("*"))
            if answer is None:
                raise hub_error(errors.EntryNotFoundError)
            if isinstance(answer, Exception):
                raise answer
            write(tmp_path / "downloaded", **{file.replace(".", "__"): answer})
            return str(tmp_path / "downloaded" / file)

        monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
        monkeypatch.setattr("serverctl.models.find.look_for_hub", lambda _: None)
        return files

    def test_a_hub_that_cannot_be_reached_is_asked_once(self, monkeypatch: pytest.MonkeyPatch, hub_cache: Path) -> None:
        asked: list[str] = []

        class Session:
            def head(self, url: str, timeout: float) -> None:
                asked.append(url)
                raise ConnectionError("no route")

        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr(huggingface_hub, "get_session", Session)
        with pytest.raises(EnvironmentLacksError, match="cannot be reached"):
            find_model("somebody/something")
        assert len(asked) == 1

    def test_a_repository_is_sized_by_its_small_files(self, answers: dict[str, Any]) -> None:
        answers.update({"config.json": CONFIG, "model.safetensors.index.json": index(4_255_140_312, "a", "b")})
        model = find_model("somebody/something")
        assert model.shape.parameters == 2_127_532_032
        assert model.checkpoint_bytes == 4_255_140_312
        assert (model.local, model.family) == (None, None)

    def test_a_repository_without_a_config_or_with_a_broken_one_is_named(self, answers: dict[str, Any]) -> None:
        with pytest.raises(UsageError, match=r"has no config\.json"):
            find_model("somebody/data-set")
        answers["config.json"] = "{"
        with pytest.raises(EnvironmentLacksError, match=r"config\.json cannot be read"):
            find_model("somebody/something")
        answers["*"] = RuntimeError("must not be asked")
        assert find_model("MAI-UI-32B").shape.parameters == 33_357_390_064, "known models are not asked for"

    @pytest.mark.parametrize(
        ("error", "kind", "said"),
        [
            (errors.GatedRepoError, MaiError, "accept its terms"),
            (errors.RepositoryNotFoundError, UsageError, "There is no model"),
            (errors.HFValidationError, UsageError, "There is no model"),
            (errors.LocalEntryNotFoundError, EnvironmentLacksError, "cannot be reached"),
            (errors.OfflineModeIsEnabled, EnvironmentLacksError, "cannot be asked"),
            (errors.HfHubHTTPError, EnvironmentLacksError, "cannot be asked"),
            (TimeoutError, EnvironmentLacksError, "cannot be asked"),
            (RuntimeError, EnvironmentLacksError, "cannot be asked"),
        ],
    )
    def test_what_it_refuses_is_said_in_a_sentence_with_a_way_out(
        self, answers: dict[str, Any], error: type[Exception], kind: type[MaiError], said: str
    ) -> None:
        answers["*"] = hub_error(error)
        with pytest.raises(kind, match=said) as refusal:
            find_model("somebody/something")
        assert "somebody/something" in refusal.value.what
        assert refusal.value.remedy


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.one_of(
        st.text(max_size=40), st.text("./~\x00ab-", max_size=400), st.just("a" * 5000), st.just("a/" + "b" * 5000)
    )
)
def test_any_name_gives_a_model_or_a_refusal_for_a_person(name: str) -> None:
    try:
        model = find_model(name, allow_network=False)
    except MaiError as refusal:
        assert refusal.what
        assert refusal.remedy
    else:
        assert model.shape.parameters > 0


def test_a_folder_named_from_where_we_are_is_the_same_to_a_server_that_runs_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert whole_name("mine") == "mine", "no model's folder"
    (tmp_path / "mine" / "config.json").write_text("{}")
    assert whole_name("mine") == str(tmp_path / "mine")
    assert whole_name("MAI-UI-8B") == "MAI-UI-8B"
    assert whole_name("a\0b") == "a\0b"


@pytest.mark.parametrize(
    ("folder", "wrote"),
    [
        ("Qwen3-VL-2B-Instruct", ""), ("mine", "Qwen/Qwen3-VL-2B-Instruct"), ("mine", "/data/Qwen3-VL-2B-Instruct/"),
        ("models--Qwen--Qwen3-VL-2B-Instruct/snapshots/abc", ""), ("Qwen3-VL-2B-Instruct-FP8", ""),
    ],
)  # fmt: skip
def test_a_folder_of_a_known_model_is_planned_as_its_name(tmp_path: Path, folder: str, wrote: str) -> None:
    model = find_model(str(write(tmp_path / folder, config__json={**CONFIG, "_name_or_path": wrote})))
    named = find_model("Qwen3-VL-2B-Instruct")
    assert (model.family, model.history_images) == (named.family, named.history_images) == ("qwen3-vl", 5)
    assert find_model(str(write(tmp_path / "unknown", config__json=CONFIG))).history_images == 3
