"""The Helm chart, rendered by helm, agrees with the schemas of Kubernetes and with the node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.configuration.loading import load_config
from tests.deploy.tools import DEPLOY, LONGEST_STOP_SECONDS, ROOT, read_yaml

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")

CHART = DEPLOY / "helm" / "hltnode"
KUBERNETES = "1.33"
CUSTOM = {"PodMonitor", "PrometheusRule", "ScaledObject"}
EVERYTHING = {
    "replicas": "3",
    "gpu.enabled": "true",
    "gpu.runtimeClassName": "nvidia",
    "hostNetwork": "true",
    "perNodeService.enabled": "true",
    "podMonitor.enabled": "true",
    "prometheusRule.enabled": "true",
    "credentialsSecret": "farm-keys",
    "output.storageClassName": "local-nvme",
    "environment.HLTNODE_LOG__LEVEL": "debug",
    "farmPage.enabled": "true",
    "nodeSelector.farm": "hlt1",
    "autoscaling.enabled": "true",
    "autoscaling.prometheusUrl": "http://prometheus.monitoring:9090",
    "readinessGates[0]": "farm.example.org/switch-port-up",
}
AUTOSCALED = {"autoscaling.enabled": "true", "autoscaling.prometheusUrl": "http://p:9090"}


@pytest.fixture(scope="module")
def helm() -> str:
    path = os.environ.get("HELM") or shutil.which("helm")
    if path is None:
        pytest.skip("helm is neither in PATH nor named by HELM; tools/fetch_helm.sh fetches it")
    return path


def helm_template(helm: str, values: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run_once(helm, tuple(f"{key}={value}" for key, value in values.items()))


@cache
def run_once(helm: str, settings: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    options = [part for setting in settings for part in ("--set", setting)]
    return subprocess.run(
        [helm, "template", "farm", str(CHART), *options], capture_output=True, text=True, check=False, timeout=50
    )


def rendered(helm: str, values: dict[str, str]) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    result = helm_template(helm, values)
    assert result.returncode == 0, result.stderr
    return [document for document in yaml.safe_load_all(result.stdout) if document is not None]


def only(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = (document for document in documents if document["kind"] == kind)
    return found


def pod(documents: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = only(documents, "StatefulSet")["spec"]["template"]["spec"]
    return spec


def test_helm_accepts_the_chart(helm: str) -> None:
    checked = subprocess.run(
        [helm, "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False, timeout=50
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_what_is_rendered_follows_the_schemas_of_kubernetes(helm: str, values: dict[str, str]) -> None:
    documents = rendered(helm, values)
    kinds = {document["kind"] for document in documents}
    assert kinds >= {"StatefulSet", "Service", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget"}
    assert kinds & CUSTOM == (CUSTOM if values else set())
    for document in documents:
        if document["kind"] not in CUSTOM:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_the_schema_check_finds_a_mistake(helm: str) -> None:
    broken = only(rendered(helm, {}), "StatefulSet")
    broken["spec"]["template"]["spec"]["terminationGracePeriodSecond"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, KUBERNETES, strict=True)


def test_the_environment_and_the_configuration_of_a_pod_are_a_valid_configuration(
    helm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = rendered(helm, {"ports.http": "9200"})
    text = only(documents, "ConfigMap")["data"]["node.toml"]
    assert tomllib.loads(text) == tomllib.loads((DEPLOY / "node.toml").read_text())
    (tmp_path / "node.toml").write_text(text)
    (container,) = pod(documents)["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], variable.get("value", "farm-0"))
    config = load_config(tmp_path / "node.toml")
    assert config.node.name == "farm-0"
    assert (config.network.data, config.http.host, config.http.port) == ("tcp://*:5555", "0.0.0.0", 9200)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for name in ("data", "control", "decisions"):
        assert getattr(config.network, name) == f"tcp://*:{ports[name]}"
    assert ports["http"] == 9200


def test_output_and_journal_are_on_a_claim_and_all_other_files_on_empty_folders(helm: str) -> None:
    documents = rendered(helm, {})
    (container,) = pod(documents)["containers"]
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    (claim,) = only(documents, "StatefulSet")["spec"]["volumeClaimTemplates"]
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    output = Path(variables["HLTNODE_OUTPUT__DIRECTORY"])
    assert mounts[str(output.parent)]["name"] == claim["metadata"]["name"]
    assert output == load_config(DEPLOY / "node.toml").output.directory
    empty = {volume["name"] for volume in pod(documents)["volumes"] if "emptyDir" in volume}
    assert {mounts[path]["name"] for path in ("/tmp", variables["CACHE_DIRECTORY"])} == empty


def test_a_pod_has_no_privileges_and_the_user_of_the_images(helm: str) -> None:
    spec = pod(rendered(helm, {}))
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert (spec["securityContext"]["runAsNonRoot"], spec["automountServiceAccountToken"]) == (True, False)
    user, group = spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsGroup"]
    for dockerfile in (ROOT / "docker").glob("Dockerfile.*"):
        assert f"\nUSER {user}:{group}\n" in dockerfile.read_text()


def test_a_pod_has_time_to_drain(helm: str) -> None:
    assert pod(rendered(helm, {}))["terminationGracePeriodSeconds"] > 1.25 * LONGEST_STOP_SECONDS
    refused = helm_template(helm, {"drainSeconds": str(int(LONGEST_STOP_SECONDS))})
    assert refused.returncode != 0
    assert "drainSeconds" in refused.stderr


def test_the_probes_ask_pages_that_the_node_has(helm: str) -> None:
    (container,) = pod(rendered(helm, {}))["containers"]
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")}
    assert {kind: probe["path"] for kind, probe in asked.items()} == {
        "startup": "/healthz",
        "readiness": "/readyz",
        "liveness": "/status",
    }
    assert {probe["port"] for probe in asked.values()} == {"http"}
    assert "http" in {port["name"] for port in container["ports"]}


def test_nodes_without_ready_feeders_have_names_and_start_together(helm: str) -> None:
    documents = rendered(helm, {"replicas": "3", "perNodeService.enabled": "true"})
    services = {
        document["metadata"]["name"]: document["spec"] for document in documents if document["kind"] == "Service"
    }
    assert set(services) == {"farm", "farm-0", "farm-1", "farm-2"}
    assert all(service["publishNotReadyAddresses"] for service in services.values())
    stateful = only(documents, "StatefulSet")["spec"]
    assert services[stateful["serviceName"]]["clusterIP"] == "None"
    assert stateful["podManagementPolicy"] == "Parallel"
    labels = stateful["template"]["metadata"]["labels"].items()
    assert services["farm"]["selector"].items() <= labels
    assert services["farm-1"]["selector"]["statefulset.kubernetes.io/pod-name"] == "farm-1"


def test_a_gpu_is_asked_for_only_where_it_is_wanted(helm: str) -> None:
    (without,) = pod(rendered(helm, {}))["containers"]
    (with_gpu,) = pod(rendered(helm, EVERYTHING))["containers"]
    assert "nvidia.com/gpu" not in without["resources"]["limits"]
    assert with_gpu["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert (without["image"], with_gpu["image"]) == ("hltnode:cpu", "hltnode:cuda")
    assert {"name": "HLTNODE_PIPELINE__BACKEND", "value": "cuda"} in with_gpu["env"]
    assert pod(rendered(helm, EVERYTHING))["runtimeClassName"] == "nvidia"


def test_only_named_peers_reach_the_ports_and_a_node_opens_no_connection(helm: str) -> None:
    policy = only(rendered(helm, {}), "NetworkPolicy")["spec"]
    assert (policy["policyTypes"], policy["egress"]) == (["Ingress", "Egress"], [])
    assert [[port["port"] for port in rule["ports"]] for rule in policy["ingress"]] == [
        ["data", "control"],
        ["decisions"],
        ["http"],
    ]
    assert all(rule["from"] for rule in policy["ingress"])
    closed = only(rendered(helm, {"networkPolicy.consumers": "null"}), "NetworkPolicy")["spec"]
    assert ["decisions"] not in [[port["port"] for port in rule["ports"]] for rule in closed["ingress"]]


FARM_VALUES: dict[str, dict[str, str]] = {
    "value": {"farmPage.enabled": "true", "replicas": "2"},
    "environment": {"environment.HLTNODE_HTTP__FARM_NODES": "x"},
    "configuration": {"config": "[http]\nfarm_nodes = []\n"},
    "dotted key": {"config": "http.farm_nodes = []\n"},
}


@pytest.mark.parametrize("values", FARM_VALUES.values(), ids=FARM_VALUES)
def test_nodes_with_a_farm_page_reach_the_http_port_of_each_other_and_nothing_else(
    helm: str, values: dict[str, str]
) -> None:
    documents = rendered(helm, values | {"ports.http": "9200"})
    policy = only(documents, "NetworkPolicy")
    kubernetes_validate.validate(policy, KUBERNETES, strict=True)
    to_nodes, to_names = policy["spec"]["egress"]
    assert to_nodes["ports"] == [{"protocol": "TCP", "port": 9200}]
    (peer,) = to_nodes["to"]
    labels = only(documents, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert peer["podSelector"]["matchLabels"].items() <= labels.items()
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "farm"
    assert [(port["protocol"], port["port"]) for port in to_names["ports"]] == [("UDP", 53), ("TCP", 53)]
    assert all(selector for selector in to_names["to"])
    # The nodes must also be allowed in.
    *_, from_nodes = policy["spec"]["ingress"]
    assert (from_nodes["from"], [port["port"] for port in from_nodes["ports"]]) == ([peer], ["http"])


@pytest.mark.parametrize(
    "config", ["[http]\nport = 1\n", "# farm_nodes = []\n", "[x]\nno_farm_nodes = 1\n", "[x]\nfarm_nodes_2 = 1\n"]
)
def test_a_node_without_a_farm_page_opens_no_connection(helm: str, config: str) -> None:
    policy = only(rendered(helm, {"config": config}), "NetworkPolicy")["spec"]
    assert (policy["egress"], len(policy["ingress"])) == ([], 3)


def test_the_peers_of_a_farm_page_can_be_named_and_names_need_not_be_looked_up(helm: str) -> None:
    values = {"farmPage.enabled": "true", "networkPolicy.farm[0].ipBlock.cidr": "10.1.0.0/16"}
    policy = only(rendered(helm, values | {"networkPolicy.dns": "null"}), "NetworkPolicy")["spec"]
    (to_nodes,) = policy["egress"]
    assert to_nodes["to"] == policy["ingress"][-1]["from"] == [{"ipBlock": {"cidr": "10.1.0.0/16"}}]


def test_the_farm_page_lists_all_nodes_of_the_release(
    helm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = rendered(helm, {"farmPage.enabled": "true", "replicas": "2", "ports.http": "9200"})
    (tmp_path / "node.toml").write_text(only(documents, "ConfigMap")["data"]["node.toml"])
    for variable in pod(documents)["containers"][0]["env"]:
        monkeypatch.setenv(variable["name"], variable.get("value", "farm-0"))
    http = load_config(tmp_path / "node.toml").http
    assert http.farm_nodes == ("http://farm-0.farm:9200", "http://farm-1.farm:9200")
    assert (http.host, http.host_names) == ("0.0.0.0", None)  # all names are accepted


def test_monitoring_scrapes_the_metrics_and_has_the_alerts(helm: str) -> None:
    documents = rendered(helm, EVERYTHING)
    (endpoint,) = only(documents, "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("http", "/metrics")
    files = [read_yaml(DEPLOY / "prometheus" / name)["groups"] for name in ("recording.yml", "alerts.yml")]
    assert only(documents, "PrometheusRule")["spec"] == {"groups": [group for groups in files for group in groups]}
    # The alerts select this job.
    labels = only(documents, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert labels[only(documents, "PodMonitor")["spec"]["jobLabel"]] == "hltnode"


@pytest.mark.parametrize(
    ("key", "value"),
    [("ports.data", "80"), ("environment.PATH", "x"), ("image.digest", "latest"), ("replica", "2")],
)
def test_a_value_that_makes_no_sense_is_refused_and_named(helm: str, key: str, value: str) -> None:
    refused = helm_template(helm, {key: value})
    assert refused.returncode != 0
    assert key.split(".")[-1] in refused.stderr


def test_keda_sets_the_number_of_nodes_by_the_time_that_back_ends_compute(helm: str) -> None:
    values = {
        "autoscaling.enabled": "true",
        "autoscaling.maxReplicas": "3",
        "autoscaling.prometheusUrl": "http://prometheus.monitoring:9090",
        "farmPage.enabled": "true",
        "perNodeService.enabled": "true",
    }
    documents = rendered(helm, values)
    scaled = only(documents, "ScaledObject")["spec"]
    assert scaled["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "farm"}
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"], scaled["fallback"]["replicas"]) == (1, 3, 3)
    # An upgrade of the release must not set the number back.
    assert "replicas" not in only(documents, "StatefulSet")["spec"]
    assert only(rendered(helm, {}), "StatefulSet")["spec"]["replicas"] == 1
    # All nodes that there may be have a name.
    services = [each["metadata"]["name"] for each in documents if each["kind"] == "Service"]
    assert services == ["farm", "farm-0", "farm-1", "farm-2"]
    environment = {each["name"]: each.get("value") for each in pod(documents)["containers"][0]["env"]}
    assert len(json.loads(environment["HLTNODE_HTTP__FARM_NODES"])) == 3
    # A pod drains before the next one goes.
    behaviour = scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "farm"},
        "spec": {"scaleTargetRef": scaled["scaleTargetRef"], "maxReplicas": 3, "behavior": behaviour},
    }
    kubernetes_validate.validate(hpa, KUBERNETES, strict=True)
    assert behaviour["scaleDown"]["policies"][0]["periodSeconds"] > pod(documents)["terminationGracePeriodSeconds"]


def test_the_query_of_keda_counts_busy_back_ends_of_the_release_alone(
    helm: str, tmp_path: Path, prometheus_programs: Path
) -> None:
    values = {"autoscaling.enabled": "true", "autoscaling.prometheusUrl": "http://p:9090"}
    (trigger,) = only(rendered(helm, values), "ScaledObject")["spec"]["triggers"]
    assert (trigger["type"], trigger["metricType"]) == ("prometheus", "AverageValue")
    assert trigger["metadata"]["threshold"] == "0.7"
    (tmp_path / "rules.yml").write_text("groups: []\n")
    # Two nodes of the release compute for 0.5 s and 0.25 s of a second; others do not count.
    series = {
        ("farm-0", "kernels", "default"): "0+7.5x40",
        ("farm-1", "kernels", "default"): "0+3.75x40",
        ("farm-0", "gather", "default"): "0+15x40",
        ("other-0", "kernels", "default"): "0+15x40",
        ("farm-0", "kernels", "elsewhere"): "0+15x40",
    }
    (tmp_path / "test.yml").write_text(
        json.dumps(
            {
                "rule_files": ["rules.yml"],
                "evaluation_interval": "15s",
                "tests": [
                    {
                        "interval": "15s",
                        "input_series": [
                            {
                                "series": "hltnode_stage_seconds_sum"
                                f'{{stage="{stage}",instance="{instance}",namespace="{namespace}"}}',
                                "values": values,
                            }
                            for (instance, stage, namespace), values in series.items()
                        ],
                        "promql_expr_test": [
                            {
                                "expr": trigger["metadata"]["query"],
                                "eval_time": "10m",
                                "exp_samples": [{"labels": "{}", "value": 0.75}],
                            }
                        ],
                    }
                ],
            }
        )
    )
    checked = subprocess.run(
        [str(prometheus_programs / "promtool"), "test", "rules", str(tmp_path / "test.yml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


CONTRADICTIONS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    # Values that are refused, a change after which they are accepted, and a part of the message.
    "fewest nodes": (
        {**AUTOSCALED, "autoscaling.minReplicas": "4", "autoscaling.maxReplicas": "3"},
        {"autoscaling.minReplicas": "3"},
        "autoscaling.minReplicas is 4, above autoscaling.maxReplicas, which is 3",
    ),
    "Prometheus": (
        {"autoscaling.enabled": "true"},
        {"autoscaling.prometheusUrl": "http://p:9090"},
        "autoscaling.prometheusUrl is missing",
    ),
    "equal ports": (
        {"ports.control": "5600", "ports.http": "5600"},
        {"ports.http": "5601"},
        "ports.control and ports.http are both 5600",
    ),
    "endpoint": (
        {"environment.HLTNODE_NETWORK__DATA": "tcp://*:7000"},
        {"ports.data": "7000"},
        "environment.HLTNODE_NETWORK__DATA is set, but the chart sets it already, by ports.data",
    ),
    "farm page": (
        {"farmPage.enabled": "true", "environment.HLTNODE_HTTP__FARM_NODES": "x"},
        {"farmPage.enabled": "false"},
        "environment.HLTNODE_HTTP__FARM_NODES is set, but the chart sets it already, by farmPage.enabled",
    ),
    "class without GPU": (
        {"gpu.runtimeClassName": "nvidia"},
        {"gpu.enabled": "true"},
        "gpu.runtimeClassName is nvidia, but gpu.enabled is false",
    ),
}


@pytest.mark.parametrize(("values", "change", "message"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_values_that_contradict_each_other_are_refused_with_their_names(
    helm: str, values: dict[str, str], change: dict[str, str], message: str
) -> None:
    refused = helm_template(helm, values)
    assert refused.returncode != 0
    assert message in refused.stderr
    others = {key: value for key, value in values.items() if not key.startswith("environment.")}
    assert helm_template(helm, others | change).returncode == 0


def test_all_contradictions_are_named_at_once(helm: str) -> None:
    refused = helm_template(helm, {"autoscaling.enabled": "true", "gpu.runtimeClassName": "nvidia"}).stderr
    assert "autoscaling.prometheusUrl" in refused
    assert "gpu.runtimeClassName" in refused


def test_the_number_of_nodes_of_an_autoscaler_that_is_off_is_not_checked(helm: str) -> None:
    values = {"autoscaling.minReplicas": "4", "autoscaling.maxReplicas": "3"}
    assert helm_template(helm, values).returncode == 0


def test_readiness_gates_and_the_time_of_an_update_are_values(helm: str) -> None:
    values = {"readinessGates[0]": "farm.example.org/up", "minReadySeconds": "30", "updateStrategy": "OnDelete"}
    documents = rendered(helm, values)
    spec = only(documents, "StatefulSet")["spec"]
    assert (spec["minReadySeconds"], spec["updateStrategy"]) == (30, {"type": "OnDelete"})
    assert pod(documents)["readinessGates"] == [{"conditionType": "farm.example.org/up"}]
    assert "readinessGates" not in pod(rendered(helm, {}))
    # Between runs no node is ready: maintenance must not wait for the next run.
    budget = only(documents, "PodDisruptionBudget")["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")


def test_the_chart_has_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = read_yaml(CHART / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_the_base_addresses_of_the_links_in_alerts_are_values(helm: str) -> None:
    values = {"docsUrl": "https://docs.example.org/hltnode", "grafanaUrl": "https://grafana.example.org"}
    documents = rendered(helm, EVERYTHING | {f"prometheusRule.{key}": value for key, value in values.items()})
    rules = [rule for group in only(documents, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    alerts = [rule["annotations"] for rule in rules if "alert" in rule]
    assert len(alerts) > 30
    assert all(f"`{values['docsUrl']}` }}}}/how-to/" in alert["runbook_url"] for alert in alerts)
    assert all(f"`{values['grafanaUrl']}` }}}}/d/" in alert["dashboard_url"] for alert in alerts)
