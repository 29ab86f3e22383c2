"""`carousel run` starts the supervisor of another host: by ssh, sshd in a network namespace; by srun, for which a stand-in runs the step.
Usage: test_launchers.py FOLDER_OF_PROGRAMS Ssh|Slurm"""
import os
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOST, PORT, SINK, SOURCE, World  # noqa: E402
from namespaces import B_ADDRESS, Namespaces, call  # noqa: E402
from processes import end_process, skip, wait_for  # noqa: E402

PROGRAMS = sys.argv[1]
SSHD = next((p for p in ("/usr/sbin/sshd", shutil.which("sshd") or "") if os.path.exists(p)), None)
SIZE = 1 << 16


def ended(step):
    with open(step, encoding="utf-8") as f:
        text = f.read()
    return text if "ended with" in text else None


class Ssh(unittest.TestCase):
    def setUp(self):
        self.net = Namespaces()
        self.addCleanup(self.net.end)
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)
        folder = self.world.folder
        for key in ("host", "user"):
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(folder, key))
        os.makedirs("/run/sshd", exist_ok=True)
        self.remote_runtime = os.path.join(folder, "runtime-far")
        os.makedirs(self.remote_runtime)
        config = self.world.write("sshd_config", f"""
ListenAddress {B_ADDRESS}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PidFile none
SetEnv XDG_RUNTIME_DIR={self.remote_runtime}
""")
        with open(os.path.join(folder, "sshd.log"), "w", encoding="utf-8") as log:
            daemon = subprocess.Popen([*self.net.inside(self.net.b), SSHD, "-D", "-e", "-f", config], stderr=log)
        self.addCleanup(end_process, daemon)
        client = self.world.write("ssh_config", f"IdentityFile {folder}/user\nUserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nLogLevel ERROR\n")
        os.makedirs(os.path.join(folder, "bin"))
        wrapper = self.world.write("bin/ssh", f'#!/bin/sh\nexec {shutil.which("ssh")} -F {client} "$@"\n')
        os.chmod(wrapper, 0o755)
        wait_for("sshd listens", lambda: call(*self.net.inside(self.net.a), wrapper, "-o", "BatchMode=yes", B_ADDRESS, "true").returncode == 0)

    def coordinator(self, *options, more=""):
        file = self.world.write("over.toml", SOURCE.format(bytes=SIZE) + SINK.format(name="sink", of="source", bytes=SIZE, more='host = "b"')
                                + HOST.format(name="b", address=B_ADDRESS, port=47100, launcher="ssh", more=more))
        coordinator = self.world.coordinator(file, *options, inside=self.net.inside(self.net.a))
        coordinator.environment["PATH"] = os.path.join(self.world.folder, "bin") + ":" + os.environ["PATH"]
        return coordinator

    def remote_supervisor(self):
        """Its pid: the run is the one in the other runtime directory."""
        out = subprocess.run([self.world.carousel, "ps", "-p", "over.b", "--json"], env={**os.environ, "XDG_RUNTIME_DIR": self.remote_runtime},
                             capture_output=True, text=True, timeout=30, check=False).stdout
        found = __import__("json").loads(out or "{}").get("pipeline") or {}
        return found.get("pid")

    def test_one_command_runs_both_hosts_and_a_killed_far_supervisor_is_started_again(self):
        coordinator = self.coordinator("--frames", "300", "--fps", "60").start()
        wait_for("frames", lambda: (coordinator.stage("b/sink").get("frames") or 0) > 3, 40)
        pid = self.remote_supervisor()
        os.kill(pid, signal.SIGKILL)
        wait_for("another supervisor on b", lambda: self.remote_supervisor() not in (None, pid), 40)
        self.assertEqual(coordinator.wait(60), 0, coordinator.text())
        report = coordinator.report()
        there = report["hosts"]["b"]
        self.assertEqual([report["frames"], report["lost"]] + [there[k] for k in ("frames", "lost", "repeated", "torn", "taken_over")],
                         [300, 0, 300, 0, 0, 0, 1])
        self.assertEqual(os.stat(os.path.join(self.world.folder, "over.token")).st_mode & 0o777, 0o600)

    def test_a_host_that_can_not_be_started_is_reported_with_the_last_output_of_ssh(self):
        coordinator = self.coordinator("--frames", "10", more='program = "/nowhere/carousel"')
        self.assertEqual(coordinator.start().wait(), 2)
        self.assertRegex(coordinator.text(), r"host b can't be started by ssh \(exit code 127\): .*(not found|No such file)")
        other = self.coordinator("--frames", "10", more='login = "10.83.0.9"')  # an unused address
        self.assertEqual(other.start().wait(), 2)
        self.assertRegex(other.text(), r"host b can't be started by ssh \(exit code 255\): .*10.83.0.9")


class Slurm(unittest.TestCase):
    """A stand-in for srun, which runs the step here as a child: checks its arguments, and that it stays as long as the supervisor."""

    def test_srun_gets_the_step_and_the_token_and_stays_until_the_end(self):
        world = World(PROGRAMS)
        self.addCleanup(world.end)
        os.makedirs(os.path.join(world.folder, "bin"))
        os.makedirs(os.path.join(world.folder, "runtime-far"))
        srun = world.write("bin/srun", f"""#!/bin/sh
echo "$@" > {world.folder}/step
while [ "${{1#--}}" != "$1" ]; do shift; done
XDG_RUNTIME_DIR={world.folder}/runtime-far "$@"
echo "ended with $?" >> {world.folder}/step
""")
        os.chmod(srun, 0o755)
        file = world.write("step.toml", SOURCE.format(bytes=SIZE) + SINK.format(name="sink", of="source", bytes=SIZE, more='host = "b"')
                           + HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="slurm", more='login = "node7"'))
        coordinator = world.coordinator(file, "--frames", "30", "--insecure")
        coordinator.environment["PATH"] = os.path.join(world.folder, "bin") + ":" + os.environ["PATH"]
        self.assertEqual(coordinator.start().wait(60), 0, coordinator.text())
        self.assertEqual(coordinator.report()["hosts"]["b"]["frames"], 30)
        step = os.path.join(world.folder, "step")
        output = wait_for("the step's end", lambda: ended(step))
        self.assertRegex(output, r"^--nodes=1 --ntasks=1 --overlap --nodelist=node7 .*carousel host --file .* --as b --launched .*--insecure --stay\nended with 0\n$")


if __name__ == "__main__":
    name = sys.argv.pop(2)
    if name == "Ssh":
        if SSHD is None or not shutil.which("ssh-keygen"):
            skip("sshd is not installed; ./tests/run --all doesn't install it, since that starts a daemon (apt-get install openssh-server)")
        Namespaces().end()   # or skips
    unittest.main(argv=[sys.argv[0], name], verbosity=2)
