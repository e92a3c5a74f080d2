"""Exported compose files and manifests."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from stubs.exports import exported, here, source_for

from foundation.errors import UsageError
from foundation.templates import to_yaml
from serverctl.commands.plans import export as command
from serverctl.export import containers
from serverctl.export.common import PINS, Source
from serverctl.plan.goal import Goal

ROOT = Path(__file__).resolve().parents[3]


def compose(source: Source) -> Any:
    return yaml.safe_load(containers.compose_documents(source)[0].text)


def manifest(source: Source) -> list[Any]:
    return list(yaml.safe_load_all(containers.kubernetes_documents(source)[0].text))


@pytest.mark.parametrize("text", ["yes", "012", "1e3", "a: b", "# x", " x ", "$HOME", "'\"", "", "one\ntwo\nthree\n"])
def test_texts_load_back_as_they_were(text: str) -> None:
    data = [{"a": text, "b": [text, text], "c": {text: 1}}]
    assert list(yaml.safe_load_all(to_yaml(data))) == data


@pytest.mark.parametrize(
    "gpu, count, preset", [("T4", 1, None), ("H100", 8, "throughput"), ("RTX 3090", 2, None), ("cpu", 1, None)]
)
def test_a_compose_file_loads_back_as_the_data_it_was_made_from(
    capsys: pytest.CaptureFixture[str], gpu: str, count: int, preset: str | None
) -> None:
    options = ["compose", "--gpu", gpu, "--gpus", str(count), "--force", *(["--preset", preset] if preset else [])]
    text = exported(capsys, *options)
    loaded = yaml.safe_load(text)
    assert loaded == compose(source_for(gpu, count, goal=Goal(preset=preset, force=True)))
    assert set(loaded) == {"services", "volumes"}, "version is obsolete, and docker-compose 1.x refuses name"
    assert "&id" not in text
    assert "<<" not in text
    assert max(len(line) for line in text.splitlines() if line.startswith("#")) <= 120


def test_a_compose_service_is_pinned_guarded_and_reachable_from_this_machine_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    loaded = yaml.safe_load(exported(capsys, "compose", "--gpu", "L4", "--port", "8123", "--name", "gui"))
    (name, service), *others = loaded["services"].items()
    assert (name, others) == ("gui", [])
    assert service["image"] == "vllm/vllm-openai:v0.33.0"
    assert service["ports"] == ["127.0.0.1:8123:8123"]
    words = service["command"]
    assert (words[words.index("--host") + 1], words[words.index("--port") + 1]) == ("0.0.0.0", "8123")
    assert service["environment"]["VLLM_API_KEY"] == "${VLLM_API_KEY:?set a key}"
    assert not set(PINS) & set(service["environment"])
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert int(service["healthcheck"]["start_period"].removesuffix("s")) >= 1800
    assert service["healthcheck"]["test"][:2] == ["CMD", "python3"]
    assert "ipc" in service or "shm_size" in service
    assert "hub-cache:/root/.cache/huggingface" in service["volumes"]
    assert loaded["volumes"] == {volume: {"name": f"gui-{volume}"} for volume in ("hub-cache", "vllm-cache")}


@pytest.mark.parametrize("kind", ["compose", "kubernetes"])
def test_a_container_starts_its_server_behind_the_gate(tmp_path: Path, kind: str) -> None:
    source = source_for()
    if kind == "compose":
        service = compose(source)["services"]["mai-vllm"]
        words, environ = (
            [word.replace("$$", "$") for word in (*service["entrypoint"], *service["command"])],
            service["environment"],
        )
    else:
        container = manifest(source)[2]["spec"]["template"]["spec"]["containers"][0]
        words, environ = (
            [*container["command"], *container["args"]],
            {e["name"]: e.get("value") for e in container["env"]},
        )
    assert words[words.index("--middleware") + 1] == "mai_gate.Gate"
    assert words[words.index("--allowed-media-domains") + 1] == "none.invalid"
    folder = tmp_path / "gate"
    words = [word.replace(environ["PYTHONPATH"], str(folder)) for word in words]
    program = tmp_path / "vllm"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import mai_gate; print(mai_gate.Gate)'\n")
    program.chmod(0o755)
    done = subprocess.run(
        words, env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(folder)}, capture_output=True, text=True
    )
    assert done.stdout.startswith("<class 'mai_gate.Gate'>"), done.stderr


def test_the_health_check_asks_the_servers_own_port_and_fails_without_one() -> None:
    source = source_for(port=1)  # nothing listens there
    test = compose(source)["services"]["mai-vllm"]["healthcheck"]["test"]
    assert "http://127.0.0.1:1/health" in test[-1]
    done = subprocess.run([sys.executable, *test[2:]], capture_output=True, text=True)
    assert done.returncode != 0
    assert "URLError" in done.stderr


def test_replicas_are_services_with_their_own_cards_and_ports() -> None:
    for source, ids in (
        (source_for("H100", 2, goal=Goal(preset="throughput")), [["0"], ["1"]]),
        (
            source_for(hardware=here(2), goal=Goal(preset="throughput")),
            [[f"GPU-0000000{number}-1111-2222-3333-444444444444"] for number in (0, 1)],
        ),
    ):
        services = compose(source)["services"]
        assert list(services) == ["mai-vllm", "mai-vllm-2"]
        devices = [s["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] for s in services.values()]
        assert devices == ids
        assert [s["ports"] for s in services.values()] == [["127.0.0.1:8000:8000"], ["127.0.0.1:8001:8001"]]


def test_dollars_reach_vllm_through_compose_and_kubernetes() -> None:
    own = ("--hf-overrides", '{"a":"$HOME ${X} $(Y)"}')
    source = source_for(goal=Goal(extra=own))
    assert compose(source)["services"]["mai-vllm"]["command"][-1] == '{"a":"$$HOME $${X} $$(Y)"}'
    container = manifest(source)[2]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][-1] == '{"a":"$HOME ${X} $$(Y)"}'


def test_the_processor_has_another_image_and_the_file_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = exported(capsys, "compose", "--gpu", "cpu", "--force")
    service = yaml.safe_load(text)["services"]["mai-vllm"]
    assert service["image"] == "vllm/vllm-openai-cpu:v0.32.0"
    assert service["entrypoint"][-2:] == ["vllm", "serve"], "vLLM's own build has a command that works"
    assert "deploy" not in service
    assert "The image is not vllm/vllm-openai" in text


def test_a_models_folder_is_mounted_by_a_variable_and_refused_for_a_cluster(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "MAI-UI-2B"
    folder.mkdir()
    shape = ROOT / "configs" / "models" / "shapes" / "qwen3-vl-2b.json"
    (folder / "config.json").write_text(shape.read_text())
    text = exported(capsys, "compose", "--gpu", "T4", "--model", str(folder))
    service = yaml.safe_load(text)["services"]["mai-vllm"]
    assert service["command"][0] == "/models/MAI-UI-2B"
    assert service["volumes"][-1].startswith("${MODEL_FOLDER:?")
    assert service["volumes"][-1].endswith(":/models/MAI-UI-2B:ro")
    assert str(tmp_path) not in text
    for name in ("kubernetes", "notebook"):
        with pytest.raises(UsageError, match="cannot use a model's folder of this machine"):
            command.main([name, "--gpu", "T4", "--model", str(folder)])


@pytest.mark.parametrize("gpu, count, preset", [("L40S", 1, None), ("H100", 8, "throughput"), ("cpu", 1, None)])
def test_a_manifest_loads_back_as_its_objects(
    capsys: pytest.CaptureFixture[str], gpu: str, count: int, preset: str | None
) -> None:
    options = ["kubernetes", "--gpu", gpu, "--gpus", str(count), "--force", *(["--preset", preset] if preset else [])]
    loaded = list(yaml.safe_load_all(exported(capsys, *options)))
    assert loaded == manifest(source_for(gpu, count, goal=Goal(preset=preset, force=True)))
    assert [item["kind"] for item in loaded] == ["Secret", "PersistentVolumeClaim", "Deployment", "Service"]
    secret, claim, deployment, service = loaded
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    with pytest.raises(ValueError, match="base64"):
        __import__("base64").b64decode(secret["data"]["VLLM_API_KEY"], validate=True)
    assert container["env"][0]["valueFrom"]["secretKeyRef"]["name"] == secret["metadata"]["name"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["spec"]["selector"]["matchLabels"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert service["spec"]["type"] == "ClusterIP"
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in pod["volumes"]
    assert pod["enableServiceLinks"] is False, "Kubernetes would set VLLM_PORT for a service named vllm"
    startup = container["startupProbe"]
    assert startup["failureThreshold"] * startup["periodSeconds"] >= 30 * 60
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": "http"}
    cards = container["resources"].get("limits", {}).get("nvidia.com/gpu")
    assert cards == (None if gpu == "cpu" else "1")
    assert deployment["spec"]["replicas"] == (8 if count == 8 else 1)
    assert (service["spec"].get("sessionAffinity") == "ClientIP") is (count == 8)
    assert not set(PINS) & {entry["name"] for entry in container["env"]}


def test_replicas_in_a_cluster_say_why_an_agent_stays_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    text = exported(capsys, "kubernetes", "--gpu", "H100", "--gpus", "2", "--preset", "throughput")
    assert "sessionAffinity ClientIP: an agent stays with one of the 2 servers." in text
    assert "ReadWriteMany" in text
