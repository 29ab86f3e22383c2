"""The unit template and the example manifests: what they name exists, and probes, ports and volumes fit together.
Usage: test_deploy.py ROOT"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import skip  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

ROOT = sys.argv[1]
DEPLOY = os.path.join(ROOT, "pipelines", "deploy")
MANIFESTS = sorted(name for name in os.listdir(DEPLOY) if name.endswith(".yaml"))
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
API = {"ConfigMap": "v1", "Pod": "v1", "Deployment": "apps/v1", "Service": "v1", "ServiceMonitor": "monitoring.coreos.com/v1"}
# Kubernetes ignores or refuses other keys: a misspelt probe would never be asked. {} are maps with names of their own.
PROBE = {"httpGet": {"path", "port"}, "initialDelaySeconds": int, "periodSeconds": int, "timeoutSeconds": int, "failureThreshold": int}
POD = {"terminationGracePeriodSeconds": int,
       "securityContext": {"runAsNonRoot": bool, "runAsUser": int, "seccompProfile": {"type": str}},
       "containers": [{"name": str, "image": str, "args": list, "ports": [{"name": str, "containerPort": int}], "startupProbe": PROBE,
                       "livenessProbe": PROBE, "readinessProbe": PROBE, "resources": {"requests": {}, "limits": {}},
                       "securityContext": {"readOnlyRootFilesystem": bool, "allowPrivilegeEscalation": bool, "capabilities": {"drop": list}},
                       "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}]}],
       "volumes": [{"name": str, "emptyDir": {"medium", "sizeLimit"}, "configMap": {"name"}}]}
METADATA = {"name": str, "labels": {}}
TEMPLATE = {"metadata": {"labels": {}}, "spec": POD}
SPECS = {"Pod": POD, "ConfigMap": None, "Service": {"selector": {}, "ports": [{"name": str, "port": int, "targetPort": str}]},
         "Deployment": {"replicas": int, "strategy": {"type": str}, "selector": {"matchLabels": {}}, "template": TEMPLATE},
         "ServiceMonitor": {"selector": {"matchLabels": {}}, "endpoints": [{"port": str, "path": str, "interval": str}]}}


def misfits(value, shape, at=""):
    """The places at which a document has a key or a type that is not in its shape."""
    if isinstance(shape, type):
        return [] if isinstance(value, shape) and not (shape is int and isinstance(value, bool)) else [f"{at}: {value!r} is not {shape.__name__}"]
    if isinstance(shape, list):
        return [w for k, each in enumerate(value) for w in misfits(each, shape[0], f"{at}[{k}]")] if isinstance(value, list) else [f"{at} is not a list"]
    if not isinstance(value, dict):
        return [f"{at} is not a map"]
    known = shape if isinstance(shape, dict) else dict.fromkeys(shape, object)
    wrong = [f"{at}.{key} is unknown" for key in value if shape and key not in known]
    return wrong + [w for key, each in value.items() if key in known for w in misfits(each, known[key], f"{at}.{key}")]


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


class Unit(unittest.TestCase):
    def setUp(self):
        self.text = text_of("pipelines/deploy/carousel@.service.in")
        self.lines = re.findall(r"^([A-Za-z]+)=(.*)$", self.text, re.M)

    def values(self, key):
        return [value for name, value in self.lines if name == key]

    def test_a_restarted_supervisor_can_adopt_the_run(self):
        self.assertEqual(self.values("KillMode"), ["process"])
        self.assertEqual(self.values("RuntimeDirectoryPreserve"), ["yes"])
        self.assertEqual(self.values("OOMPolicy"), ["continue"])
        grace = float(re.search(r"^\| `supervisor_grace_s` \|[^|]*\|[^|]*\| `([\d.]+)` \|", text_of("pipelines/docs/keys.md"), re.M)[1])
        self.assertLess(int(self.values("RestartSec")[0].removesuffix("ms")) / 1000, grace / 2)
        self.assertIn("XDG_RUNTIME_DIR=%t/" + self.values("RuntimeDirectory")[0], self.values("Environment"))

    def test_systemd_accepts_it(self):
        tool = shutil.which("systemd-analyze")
        if tool is None:
            self.skipTest("systemd-analyze is not installed (package: systemd)")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "carousel")
            with open(program, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\n")
            os.chmod(program, 0o755)
            unit = os.path.join(folder, "carousel@demo.service")
            with open(unit, "w", encoding="utf-8") as f:
                f.write(self.text.replace("@bin@", folder))
            done = subprocess.run([tool, "verify", "--man=no", "--recursive-errors=no", unit], capture_output=True, text=True, check=False,
                                  env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"})
            about = [line for line in done.stderr.splitlines() if "carousel@demo.service" in line]
            self.assertEqual((done.returncode, about), (0, []), done.stderr)


@unittest.skipIf(yaml is None, "PyYAML is not installed (package: python3-yaml)")
class Manifests(unittest.TestCase):
    def documents(self):
        for name in MANIFESTS:
            for document in yaml.safe_load_all(text_of("pipelines/deploy", name)):
                yield name, document

    def pods(self):
        for name, d in self.documents():
            if d["kind"] in ("Pod", "Deployment"):
                yield name, d["spec"]["template"]["spec"] if d["kind"] == "Deployment" else d["spec"]

    def test_each_document_has_a_known_kind_and_a_name(self):
        for name, d in self.documents():
            self.assertEqual(d["apiVersion"], API[d["kind"]], name)
            self.assertRegex(d["metadata"]["name"], r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")

    def test_no_key_is_unknown_or_of_another_type(self):
        for name, d in self.documents():
            shape = {"apiVersion": str, "kind": str, "metadata": METADATA, **({"data": {}} if d["kind"] == "ConfigMap" else {"spec": SPECS[d["kind"]]})}
            self.assertEqual(misfits(d, shape), [], name)
            self.assertGreaterEqual(set(d), set(shape))
        wrong = {"containers": [{"name": 1, "livenessProb": {}}], "terminationGracePeriodSeconds": True}
        self.assertEqual(misfits(wrong, POD), [".containers[0].livenessProb is unknown", ".containers[0].name: 1 is not str",
                                               ".terminationGracePeriodSeconds: True is not int"])

    def test_arguments_name_options_of_run_and_files_of_the_image(self):
        options = set(re.findall(r'"(--[a-z-]+)"|,(--[a-z-]+)"', text_of("pipelines/cli/options.cpp") + text_of("pipelines/cli/start.cpp")))
        options = {a or b for a, b in options} | {"--out", "--device"}
        for name, pod in self.pods():
            args = pod["containers"][0]["args"]
            self.assertEqual(args[0], "run", name)
            self.assertEqual([a for a in args if a.startswith("--") and a not in options], [], name)
            mounts = {m["mountPath"]: m["name"] for m in pod["containers"][0]["volumeMounts"]}
            file = args[-1]
            if file.startswith("/opt/carousel/share/carousel/"):
                self.assertTrue(os.path.exists(os.path.join(ROOT, file.removeprefix("/opt/carousel/share/carousel/"))), file)
            else:
                self.assertIn(os.path.dirname(file), mounts)
                self.assertIn(os.path.basename(file), next(d["data"] for _, d in self.documents() if d["kind"] == "ConfigMap"))

    def test_a_monitor_selects_the_service_and_the_service_its_pods(self):
        all_documents = {d["kind"]: d for _, d in self.documents()}
        service, monitor = all_documents["Service"], all_documents["ServiceMonitor"]
        self.assertEqual(service["spec"]["selector"], all_documents["Deployment"]["spec"]["selector"]["matchLabels"])
        self.assertEqual(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
        container = all_documents["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        for port in service["spec"]["ports"]:
            self.assertIn(port["targetPort"], [p["name"] for p in container["ports"]])
        served = set(re.findall(r'path == "(/[a-z]+)"', text_of("viewer/web/connection.cpp")))
        for endpoint in monitor["spec"]["endpoints"]:
            self.assertIn(endpoint["port"], [p["name"] for p in service["spec"]["ports"]])
            self.assertIn(endpoint["path"], served)

    def test_a_deployment_selects_its_own_pods_and_never_runs_two(self):
        for _, d in self.documents():
            if d["kind"] == "Deployment":
                self.assertEqual(d["spec"]["selector"]["matchLabels"], d["spec"]["template"]["metadata"]["labels"])
                self.assertEqual((d["spec"]["replicas"], d["spec"]["strategy"]), (1, {"type": "Recreate"}))

    def test_probes_ask_paths_that_the_web_ui_serves_at_a_port_of_their_container(self):
        served = set(re.findall(r'path == "(/[a-z]+)"', text_of("viewer/web/connection.cpp")))
        found = 0
        for name, pod in self.pods():
            for c in pod["containers"]:
                ports = {p["name"]: p["containerPort"] for p in c.get("ports", [])}
                for probe in (c[p]["httpGet"] for p in PROBES if p in c):
                    self.assertIn(probe["path"], served, name)
                    self.assertIn("0.0.0.0:" + str(ports[probe["port"]]), c["args"], name)
                    found += 1
        self.assertEqual(found, 5)

    def test_volumes_are_declared_and_the_runtime_directory_is_shared(self):
        for name, pod in self.pods():
            declared = {v["name"] for v in pod["volumes"]}
            mounted = [{m["mountPath"]: m["name"] for m in c["volumeMounts"]} for c in pod["containers"]]
            self.assertEqual({n for m in mounted for n in m.values()}, declared, name)
            self.assertEqual({m["/tmp"] for m in mounted}, {"runtime"}, name)

    def test_containers_run_without_rights_and_with_limits(self):
        for name, pod in self.pods():
            self.assertEqual((pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]), (True, 10001), name)
            for c in pod["containers"]:
                self.assertEqual(c["securityContext"], {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
                                                        "capabilities": {"drop": ["ALL"]}}, name)
                self.assertEqual(set(c["resources"]["limits"]), {"cpu", "memory"}, name)

    def test_images_have_this_version_and_pipelines_name_shipped_programs(self):
        version = re.search(r"^project\(carousel VERSION ([\d.]+)", text_of("CMakeLists.txt"), re.M)[1]
        for name, pod in self.pods():
            self.assertEqual(pod["containers"][0]["image"], "carousel:" + version, name)
        for name, d in self.documents():
            for text in d.get("data", {}).values():
                for program in re.findall(r'^run = "carousel-(\w+)"$', text, re.M):
                    self.assertTrue(os.path.isdir(os.path.join(ROOT, "stages", program)), (name, program))


if __name__ == "__main__":
    if yaml is None and shutil.which("systemd-analyze") is None:
        skip("neither PyYAML nor systemd-analyze is installed (packages: python3-yaml, systemd)")
    unittest.main(argv=sys.argv[:1], verbosity=2)
