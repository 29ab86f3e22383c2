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
API = {"ConfigMap": "v1", "Pod": "v1", "Deployment": "apps/v1"}


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
            if d["kind"] != "ConfigMap":
                yield name, d["spec"]["template"]["spec"] if d["kind"] == "Deployment" else d["spec"]

    def test_each_document_has_a_known_kind_and_a_name(self):
        for name, d in self.documents():
            self.assertEqual(d["apiVersion"], API[d["kind"]], name)
            self.assertRegex(d["metadata"]["name"], r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")

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
