"""Two tenants with a space of the same name: two users, and two runtime directories of one user. Neither sees, opens or harms the other's.
Usage: test_tenants.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER. Only root can become other users; for others that half is skipped, which is reported."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from space_world import CAROUSEL, CLIENT, Spaces, wait_for  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import skip  # noqa: E402

USERS = (65534, 65533)  # no process, and one that has no name


class Tenant:
    """Programs of one user, with a separate runtime directory."""

    def __init__(self, test, uid, programs):
        self.test, self.uid, self.programs = test, uid, programs
        self.folder = tempfile.mkdtemp(prefix="carousel-tenant-", dir="/tmp")
        test.addCleanup(shutil.rmtree, self.folder, True)
        os.chown(self.folder, uid, uid)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}

    def as_user(self):
        if os.getuid() != self.uid:
            os.setgroups([])
            os.setgid(self.uid)
            os.setuid(self.uid)

    def start(self, program, *words, environment=None):
        p = subprocess.Popen([os.path.join(self.programs, program), *words], env=environment or self.environment, cwd=self.folder,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=self.as_user)
        self.test.started.append(p)
        return p

    def space(self):
        """Holds "lab" and has one client in it."""
        holder = self.start("carousel", "hold", "lab", "--size", "4M")
        self.test.assertIn("holding", holder.stdout.readline())
        client = self.start("carousel-space-client", "lab")
        self.test.assertEqual(client.stdout.readline(), "ready\n")
        return holder, client

    def ps(self):
        p = self.start("carousel", "ps", "--json")
        return json.loads(p.communicate(timeout=20)[0])["spaces"]

    def try_to(self, work):
        """The result of work() in a process of this user: its answer, or the name of its error."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                self.as_user()
                output = work()
            except OSError as e:
                output = type(e).__name__
            os.write(write, json.dumps(output).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as f:
            output = json.loads(f.read())
        os.waitpid(pid, 0)
        return output


def connect_and_send(path, text):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(5)
        s.connect(path)
        try:
            s.send(text.encode())
        except BrokenPipeError:
            pass
        try:
            return s.recv(4096).decode()
        except ConnectionResetError:  # the reply is still unread at the other end; the answer comes after it
            return s.recv(4096).decode()


class Tenants(Spaces):
    def tenants(self, *uids):
        # In a place that every user may enter.
        programs = tempfile.mkdtemp(prefix="carousel-programs-", dir="/tmp")
        self.addCleanup(shutil.rmtree, programs, True)
        os.chmod(programs, 0o755)
        for program in (CAROUSEL, CLIENT):
            shutil.copy(program, programs)
        return [Tenant(self, uid, programs) for uid in uids]

    def both_are_alone(self, one, two):
        (holder_1, client_1), (holder_2, client_2) = one.space(), two.space()
        for tenant, holder, client in ((one, holder_1, client_1), (two, holder_2, client_2)):
            seen = tenant.ps()
            self.assertEqual([(s["name"], s["holder"]) for s in seen], [("lab", holder.pid)])
            self.assertEqual([c["pid"] for c in seen[0]["clients"]], [client.pid])
            self.assertEqual(seen[0]["primitives"][0]["figures"]["taken"], 1)  # the other's permit isn't in it
        return holder_1, client_1, holder_2, client_2

    def test_two_folders_of_one_user_are_two_worlds(self):
        one, two = self.tenants(os.getuid(), os.getuid())
        holder_1, client_1, _, client_2 = self.both_are_alone(one, two)
        self.kill(holder_1)
        self.goes_on(client_2)
        self.goes_on(client_1)
        self.assertEqual([s["state"] for s in two.ps()], ["held"])
        self.assertEqual([s["state"] for s in one.ps()], ["orphaned"])

    def test_two_users_can_t_see_open_or_harm_each_other_s(self):
        if os.getuid() != 0:
            self.skipTest("only root can become two other users")
        one, two = self.tenants(*USERS)
        holder, client, _, client_2 = self.both_are_alone(one, two)
        place = os.path.join(one.folder, "carousel-spaces", "lab")
        sock = os.path.join(place, "hold.sock")
        inspect = '{"inspect":{"version":1}}'

        def memory_of(pid):
            with open(f"/proc/{pid}/mem", "rb"):
                return "opened"

        for folder in (one.folder, os.path.dirname(place), place):
            self.assertEqual(two.try_to(lambda f=folder: os.listdir(f)), "PermissionError")
        self.assertEqual(two.try_to(lambda: connect_and_send(sock, inspect)), "PermissionError")
        for pid in (holder.pid, client.pid):
            self.assertEqual(two.try_to(lambda p=pid: os.kill(p, 9)), "PermissionError")
            self.assertEqual(two.try_to(lambda p=pid: os.listdir(f"/proc/{p}/fd")), "PermissionError")
            self.assertEqual(two.try_to(lambda p=pid: memory_of(p)), "PermissionError")
        # A careless owner permits everything: then the kernel's check of the requesting user refuses.
        for path, mode in ((one.folder, 0o755), (os.path.dirname(place), 0o755), (place, 0o755), (sock, 0o666)):
            os.chmod(path, mode)
        for text in (inspect, '{"attach":{"version":1,"start_time":1}}', '{"return":{"version":1,"start_time":1,"epoch":1}}'):
            self.assertIn(f"belongs to user {USERS[0]}", two.try_to(lambda t=text: connect_and_send(sock, t)))
        # The other user's runtime directory named by XDG_RUNTIME_DIR is not used: the program uses its own.
        strange = two.start("carousel", "ps", "-p", "lab", environment={**os.environ, "XDG_RUNTIME_DIR": one.folder})
        output = strange.communicate(timeout=20)[0]
        self.assertIn('no pipeline "lab" is running', output)
        self.kill(client_2)
        wait_for("the mend", lambda: two.ps()[0]["clients"] == [], 10)
        self.goes_on(client)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    if result.wasSuccessful() and result.skipped:
        skip(result.skipped[0][1])
    sys.exit(0 if result.wasSuccessful() else 1)
