"""Commands of the documents: blocks that begin with ```sh, and in ```console the lines after "$ ". documents.toml states what a reader has
before the first command of a document, what is different in a test, and which commands no test can run, with the reason."""
import os
import re
import signal
import subprocess
import tempfile
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
MARKER = "carousel-document-step"
KINDS = ("root", "gpu", "host", "set-up", "other test")   # why a command is not run: the first words of `not_run`


def blocks(text):
    """[(language, content)] of the fenced blocks of a Markdown text."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)


def commands_of(text):
    """Commands of a document, in order. Lines that continue the one before, and here-documents, belong to it."""
    found = []
    for language, content in blocks(text):
        if language == "console":
            found += [line[2:] for line in content.splitlines() if line.startswith("$ ")]
        if language != "sh":
            continue
        until = None
        for line in content.splitlines():
            if until is not None or (found and found[-1].endswith("\\")):
                found[-1] += "\n" + line
                until = None if line == until else until
            elif line.strip() and not line.startswith("#"):
                found.append(line)
                here = re.search(r"<<\s*'?(\w+)'?", line)
                until = here[1] if here else None
    return found


def plan():
    with open(os.path.join(HERE, "documents.toml"), "rb") as file:
        return tomllib.load(file)


def entry_for(document, command):
    """The row of documents.toml for a command: the longest `begins` that it begins with."""
    rows = [row for row in document.get("commands", []) if command.startswith(row["begins"])]
    return max(rows, key=lambda row: len(row["begins"]), default={})


def with_entries(document, commands):
    """[(command, row)]; the row is empty for a command that runs as it is shown."""
    rest, found = None, []
    for command in commands:
        if "rest" in document and command.startswith(document["rest"]["begins"]):
            rest = document["rest"]
        found.append((command, rest or entry_for(document, command)))
    return found


def as_run(command, row, shorter):
    """The text that bash gets for a command."""
    text = row.get("as", command)
    for old, new in shorter.items():
        text = text.replace(old, new)
    if "seconds" in row:   # Ctrl-C after that time; without --foreground the whole group gets it, and the command twice
        return f"timeout --foreground --preserve-status -s INT {row['seconds']} {text}"
    return f"{text.split(' # ')[0].rstrip()} & sleep 1" if row.get("background") else text


def follow(steps, folder, environment, timeout, pause=0):
    """Runs (shown, text, code) in one shell, as a reader types them, up to the first whose exit code differs, with a pause of `pause` seconds
    before each. Returns [(shown, expected code, code, what it printed)]. Ends whatever the commands have left in the shell's process
    group."""
    script = ["exec 2>&1"]
    for number, (_, text, code) in enumerate(steps):
        script.append(f"{f'sleep {pause}' if pause else ''}\n{text}\ncode=$?; echo; echo {MARKER} {number} $code; [ $code = {code} ] || exit 0")
    # Into a file: what a command has left in the background would hold a pipe open.
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        process = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                   start_new_session=True)
        timed_out = ""
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = f"not finished within {timeout} s"
        finally:   # also where this test is interrupted
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait(10)
        out.seek(0)
        printed = out.read()
    done, text = [], ""
    for line in printed.splitlines():
        if line.startswith(MARKER):
            _, number, code = line.split()
            shown, _, expected = steps[int(number)]
            done.append((shown, expected, int(code), text))
            text = ""
        else:
            text += line + "\n"
    if len(done) < len(steps) and (not done or done[-1][1] == done[-1][2]):
        done.append((steps[len(done)][0], 0, -1, f"{text}{timed_out}\n"))
    return done
