"""A benchmark is got from the hub by its name; here from a stand-in on this machine."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
from stubs.http_stub import Handler, HttpStub

from agent.evals.hub import benchmark_folder
from agent.evals.samples import read_benchmark
from foundation.errors import EnvironmentLacksError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROW = {"img_filename": "a.png", "bbox": [1, 2, 30, 40], "instruction": "click", "data_type": "text", "data_source": "x"}


def _archive() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("screenspotv2_image/a.png", b"picture")
        archive.writestr("../outside.png", b"evil")
    return written.getvalue()


FILES = {"screenspot_web_v2.json": json.dumps([ROW]).encode(), "screenspotv2_image.zip": _archive()}


def _serve(request: Handler) -> None:
    path = request.path.partition("?")[0]
    if (
        path == "/api/datasets/some/benchmark/revision/main"
        or path == f"/api/datasets/some/benchmark/revision/{COMMIT}"
    ):
        siblings = [{"rfilename": name, "size": len(data)} for name, data in FILES.items()]
        request.respond(
            json.dumps({"id": "some/benchmark", "sha": COMMIT, "siblings": siblings}).encode(), "application/json"
        )
    elif path.startswith(f"/api/datasets/some/benchmark/tree/{COMMIT}"):
        listed = [{"type": "file", "path": name, "size": len(data), "oid": "1" * 40} for name, data in FILES.items()]
        request.respond(json.dumps(listed).encode(), "application/json")
    elif (name := path.rpartition("/")[2]) in FILES:
        data = FILES[name]
        request.send_response(200)
        for key, value in {
            "Content-Length": str(len(data)), "X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha1(data).hexdigest()}"',
        }.items():  # fmt: skip
            request.send_header(key, value)
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(data)
    else:
        request.respond(b"{}", "application/json", 404)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HttpStub]:
    class Both(HttpStub):
        def __init__(self) -> None:
            super().__init__(_serve)
            self.RequestHandlerClass.do_HEAD = _serve  # type: ignore[attr-defined]

    server = Both()
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    yield server
    server.close()


def test_a_name_that_is_no_folder_is_got_once_with_its_pictures(hub: HttpStub, tmp_path: Path) -> None:
    told: list[str] = []
    for _ in range(2):
        folder = benchmark_folder(Path("some/benchmark"), told.append)
        (sample,) = read_benchmark("screenspot-v2", folder).samples
        assert sample.image.read_bytes() == b"picture"
    assert [line.partition(" ")[0] for line in told] == ["some/benchmark", "unpacking", "some/benchmark"]
    assert not list(tmp_path.glob("outside.png")) and not (folder.parent / "outside.png").exists()


def test_a_folder_is_used_as_it_is_and_a_name_that_the_hub_does_not_know_is_told(hub: HttpStub, tmp_path: Path) -> None:
    assert benchmark_folder(tmp_path, lambda _: None) == tmp_path
    assert benchmark_folder(tmp_path / "missing", lambda _: None) == tmp_path / "missing"
    with pytest.raises(EnvironmentLacksError, match="other/benchmark cannot be got"):
        benchmark_folder(Path("other/benchmark"), lambda _: None)
