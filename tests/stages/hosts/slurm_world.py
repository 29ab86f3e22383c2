"""A Slurm of two nodes on one machine, in a separate folder: munged, slurmctld, two slurmd, with their own ports and socket."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import end_process, skip, wait_for  # noqa: E402

NEEDED = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
NODES = ("na", "nb")
# No cgroups and no accounts: what a test has permission for, and what leaves nothing on the machine.
CONFIGURATION = """ClusterName=carousel
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PartitionName=all Nodes={nodes} Default=YES State=UP OverSubscribe=FORCE
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cores}\n"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    """Skips, with the reason, if it is not available."""

    def __init__(self):
        sbin = os.environ["PATH"] + ":/usr/sbin:/sbin"
        programs = {name: shutil.which(name, path=sbin) for name in NEEDED}
        missing = [name for name, path in programs.items() if not path]
        if missing:
            skip(f"Slurm is not installed: no {', '.join(missing)} (apt-get install slurmd slurmctld slurm-client munge)")
        if os.geteuid() != 0:
            skip("slurmd starts steps for its users as root alone")
        self.folder = tempfile.mkdtemp(prefix="carousel-slurm-")
        self.daemons = []
        host, cores = socket.gethostname().split(".")[0], os.cpu_count()
        for folder in ("state", *("spool-" + node for node in NODES)):
            os.mkdir(os.path.join(self.folder, folder))
        self.file = self.write("slurm.conf", CONFIGURATION.format(host=host, folder=self.folder, port=free_port(), nodes=",".join(NODES))
                               + "".join(NODE.format(name=node, host=host, port=free_port(), cores=cores) for node in NODES))
        key = self.write("munge.key", os.urandom(512).hex())
        os.chmod(key, 0o400)
        os.environ["SLURM_CONF"] = self.file
        munge = {name: os.path.join(self.folder, "munge." + name) for name in ("socket", "pid", "log", "seed")}
        self.start("munged", programs["munged"], "--foreground", "--force", "--key-file=" + key, "--socket=" + munge["socket"],
                   "--pid-file=" + munge["pid"], "--log-file=" + munge["log"], "--seed-file=" + munge["seed"])
        wait_for("munged answers", lambda: os.path.exists(munge["socket"]))
        self.start("slurmctld", programs["slurmctld"], "-D", "-c", "-f", self.file)
        for node in NODES:
            self.start("slurmd-" + node, programs["slurmd"], "-D", "-N", node, "-f", self.file)
        try:
            wait_for("both nodes are idle", self.is_up)
        except AssertionError as e:
            output = self.text()
            self.end()
            raise AssertionError(f"{e}\n{output}") from None

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def start(self, name, *words):
        with open(os.path.join(self.folder, name + ".out"), "w", encoding="utf-8") as out:
            self.daemons.append(subprocess.Popen(words, stdout=out, stderr=out))

    def is_up(self):
        output = subprocess.run(["sinfo", "--noheader", "--Node", "--format=%N %t"], capture_output=True, text=True, timeout=20, check=False).stdout
        return sorted(output.split("\n"))[-len(NODES):] == [node + " idle" for node in NODES]

    def text(self):
        out = ""
        for name in ("slurmctld", *("slurmd-" + node for node in NODES)):
            with open(os.path.join(self.folder, name + ".out"), encoding="utf-8", errors="replace") as f:
                out += f"--- {name}\n" + f.read()[-1500:]
        return out

    def end(self):
        for daemon in reversed(self.daemons):   # munged last: the others authenticate through it
            end_process(daemon)
        os.environ.pop("SLURM_CONF", None)
        shutil.rmtree(self.folder, True)
