"""A pseudo terminal for tests of programs that draw on one."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A pseudo terminal with a program on it, and what that has written."""

    def __init__(self, words, environment, columns=120, rows=30):
        ready, ready_write = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.close(ready_write)
            os.read(ready, 1)  # until the size is set and the state of the terminal is known
            os.execvpe(words[0], words, environment)
        os.close(ready)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.fd)
        os.close(ready_write)
        self.out = b""

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds=0.1):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                part = os.read(self.fd, 65536)
            except OSError:
                return
            self.out += part

    def screen(self):
        """The last picture, as lines without colours."""
        self.read()
        last = self.out.split(b"\x1b[H")[-1].decode(errors="replace")
        return [line.rstrip("\r") for line in ANSI.sub("", last).split("\n")]

    def exit_code(self):
        for _ in range(200):
            self.read(0.05)
            time.sleep(0.02)  # its terminal may be closed some time before it is gone
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read()
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("top has not ended")

    def restored(self):
        return self.out.count(ENTER) == self.out.count(LEAVE) and termios.tcgetattr(self.fd) == self.before
