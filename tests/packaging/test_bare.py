"""Each kind of package in a bare root: installed, used, removed. Usage: test_bare.py BUILD [deb|wheel|tarball]"""
import json
import os
import sys
import unittest

from bare_root import BareRoot, package

BUILD = os.path.abspath(sys.argv[1])
SETTINGS = "--frames 60 --size 320x180 --device cpu --set geometry.triangles=2000 --no-color"
STAGE = '''import carousel

@carousel.stage(output=carousel.like(0), device="cpu")
def negative(color, out):
    source, target = memoryview(color).cast("B"), memoryview(out).cast("B")
    target[:] = bytes(255 - each for each in source)
'''
PIPELINE = """[pipeline]
name = "negatives"
[[stage]]
name = "geometry"
run = "carousel-geometry"
[[stage]]
name = "vertex"
run = "carousel-vertex"
inputs = ["geometry"]
[[stage]]
name = "fragment"
run = "carousel-fragment"
inputs = ["vertex"]
[[stage]]
name = "negative"
run = "negative.py"
inputs = ["fragment"]
[[stage]]
name = "display"
run = "carousel-display"
inputs = ["negative"]
"""
FROM_PYTHON = '''import carousel, sys
with carousel.Pipeline(sys.argv[1]).start(device="cpu", frames=60, options=["--out", "", "--size", "320x180"]) as run:
    assert run.wait(60) == 0, run.log_text()
    print(carousel.__version__, [run.report()[k] for k in ("frames", "lost", "repeated", "torn")])
'''


class Bare(unittest.TestCase):
    def setUp(self):
        self.root = BareRoot(BUILD)
        self.addCleanup(self.root.end)
        self.packages = os.path.join(self.root.temporary.name, "packages")
        self.before = self.root.named_carousel()

    def check_report(self, text, frames=60):
        report = json.loads(text[text.index("{"):])
        self.assertEqual([report[k] for k in ("frames", "lost", "repeated", "torn")], [frames, 0, 0, 0])

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.root.folder + path), exist_ok=True)
        with open(self.root.folder + path, "w", encoding="utf-8") as file:
            file.write(text)

    def demo(self, carousel, pipelines):
        """Runs the demo as a user, with pictures."""
        self.check_report(self.root.shell(f"""cd /tmp
'{carousel}' run '{pipelines}/demo.toml' {SETTINGS} --out /tmp/out/frame_%05d.png --report /tmp/report.json >/tmp/log 2>&1 || {{ cat /tmp/log; exit 1; }}
test $(ls /tmp/out | wc -l) = 60
ls -A /dev/shm
cat /tmp/report.json"""))

    def test_deb(self):
        paths = package("deb", BUILD, self.packages)
        for path in paths:
            self.root.put(path, "/srv/packages")
        self.root.apt_install("/srv/packages/*.deb")
        self.demo("carousel", "/usr/share/carousel/pipelines")
        self.assertIn("demo.toml", self.root.shell("dpkg -L carousel"))
        if any("carousel-doc" in path for path in paths):   # made where mkdocs is installed
            self.assertIn("/usr/share/doc/carousel/html/index.html", self.root.shell("dpkg -L carousel-doc"))
        self.assertIn(": valid", self.root.shell("carousel validate /usr/share/carousel/pipelines/inference.toml"))
        with self.subTest("the viewer shows the run"):
            self.root.apt_install("xvfb", "libgl1-mesa-dri")
            self.assertEqual(self.root.shell(f"""cd /tmp
export DISPLAY=:7 LIBGL_ALWAYS_SOFTWARE=1
Xvfb :7 -screen 0 1280x800x24 -nolisten tcp >/tmp/xvfb 2>&1 &
carousel up /usr/share/carousel/pipelines/demo.toml -d {SETTINGS.replace("--frames 60", "--fps 60")} --out '' >/tmp/up 2>&1
carousel-viewer --seconds 3 --size 1000x700 --screenshot /tmp/window.png >/tmp/viewer 2>&1 || {{ cat /tmp/viewer; exit 1; }}
carousel down >/tmp/down 2>&1
head -c 8 /tmp/window.png | tail -c +2 | head -c 3"""), "PNG")
        with self.subTest("Python, from a stage to a run"):
            self.write("/srv/user/stage.py", FROM_PYTHON)
            self.assertIn("[60, 0, 0, 0]", self.root.shell("python3 /srv/user/stage.py /usr/share/carousel/pipelines/demo.toml"))
            self.python_stage("carousel")
            self.root.shell("python3 -c 'import carousel'", root=True)   # writes compiled files
        with self.subTest("a stage in C++"):
            self.root.apt_install("g++", "cmake", "ninja-build")
            self.root.shell(f"""cd /tmp
carousel new stage blur >/tmp/new
cmake -S blur -B blur/build -G Ninja >/tmp/cmake 2>&1 || {{ cat /tmp/cmake; exit 1; }}
cmake --build blur/build >/tmp/ninja 2>&1 || {{ cat /tmp/ninja; exit 1; }}
ctest --test-dir blur/build --output-on-failure
carousel run blur/blur.toml {SETTINGS} --out ''""")
        self.root.shell("apt-get -q -y purge 'carousel*' python3-carousel 'gstreamer1.0-carousel*' && rm -r /srv/packages /srv/user", root=True)
        self.assertEqual(self.root.named_carousel(), self.before)

    def python_stage(self, carousel):
        """A stage in Python without NumPy."""
        self.write("/srv/user/negative.py", STAGE)
        self.write("/srv/user/negatives.toml", PIPELINE)
        self.check_report(self.root.shell(f"""cd /tmp
'{carousel}' run /srv/user/negatives.toml {SETTINGS} --out '' --report /tmp/report.json >/tmp/log 2>&1 || {{ cat /tmp/log; exit 1; }}
cat /tmp/report.json"""))

    def test_wheel(self):
        wheel, = package("wheel", BUILD, self.packages)
        self.root.put(wheel, "/srv/packages")
        self.root.apt_install("python3-venv")
        self.root.shell(f"python3 -m venv /opt/venv && /opt/venv/bin/pip install --no-index /srv/packages/{os.path.basename(wheel)}", root=True)
        self.demo("/opt/venv/bin/carousel", "/opt/venv/share/carousel/pipelines")
        self.write("/srv/user/run.py", FROM_PYTHON)
        self.assertIn("[60, 0, 0, 0]", self.root.shell("/opt/venv/bin/python /srv/user/run.py /opt/venv/share/carousel/pipelines/demo.toml"))
        self.python_stage("/opt/venv/bin/carousel")
        self.root.shell("/opt/venv/bin/pip uninstall -y carousel && rm -r /srv/packages /srv/user", root=True)
        self.assertEqual(self.root.named_carousel(), self.before)

    def test_tarball(self):
        """Without any package except those that every Debian has."""
        tarball, = package("tarball", BUILD, self.packages)
        self.root.put(tarball, "/srv/packages")
        name = os.path.basename(tarball)[:-len(".tar.gz")]
        self.root.shell(f"mkdir '/opt/a folder' && tar -C '/opt/a folder' -xzf /srv/packages/{name}.tar.gz", root=True)
        self.demo(f"/opt/a folder/{name}/bin/carousel", f"/opt/a folder/{name}/share/carousel/pipelines")
        self.root.shell(f"mkdir '/srv/elsewhere now' && mv '/opt/a folder/{name}' '/srv/elsewhere now/it'", root=True)
        self.demo("/srv/elsewhere now/it/bin/carousel", "/srv/elsewhere now/it/share/carousel/pipelines")
        self.assertIn("libcrypto", self.hosts_are_refused("/srv/elsewhere now/it/bin/carousel"))

    def hosts_are_refused(self, carousel):
        """The message of a run over two hosts where UCX and libcrypto are missing."""
        hosts = 'host = "b"\n[hosts.b]\naddress = "127.0.0.1"\nlauncher = "none"\n'
        self.write("/srv/user/hosts.toml", PIPELINE.replace("negative.py", "carousel-sharpen") + hosts)
        return self.root.shell(f"cd /tmp && '{carousel}' run /srv/user/hosts.toml --frames 3 --out '' 2>&1 || true")


if __name__ == "__main__":
    chosen = [f"Bare.test_{kind}" for kind in sys.argv[2:]]
    unittest.main(argv=sys.argv[:1] + chosen, verbosity=2)
