"""What new commits may not add: terms of the glossary's left column, and subjects that name no subsystem.

Usage: check_commits.py ROOT [SINCE]. Checks the commits after SINCE (by default the commit in `first_checked_commit`) and what is not
committed yet; prints one line per offence, exit code 1 if there is any. Without git history (a source archive, a shallow clone) the part
that is missing is reported as not checked.
"""
import collections
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GLOSSARY = os.path.join(HERE, "glossary.tsv")
SUBJECT = re.compile(r"[a-z][a-z0-9_+-]*(( |, |/)[a-z0-9_+-]+){0,3}: \S")
MOST_SUBJECT = 72
# Texts that list old words on purpose, and inputs of tests that are no prose.
EXEMPT = (":!tests/packaging/tidy/", ":!CHANGELOG.md", ":!tests/fuzz/corpus/", ":!LICENSE", ":!*.png", ":!shared/core/user_input.cpp")


def read_glossary(path=GLOSSARY):
    """[(compiled pattern, replacement)]"""
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    return [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in rows]


def offending_terms(diff, glossary):
    """(term, replacement, an added line) for each term that the diff adds more often than it removes it."""
    balance, example = collections.Counter(), {}
    for line in diff.splitlines():
        if line[:1] not in "+-" or line.startswith(("+++ ", "--- ")):
            continue
        for pattern, _ in glossary:
            for found in pattern.finditer(line[1:]):
                if line[0] == "+":
                    balance[pattern] += 1
                    example.setdefault(pattern, (found[0], line[1:].strip()))
                else:
                    balance[pattern] -= 1
    for pattern, instead in glossary:
        if balance[pattern] > 0:
            yield (*example[pattern], instead)


def subject_offence(subject):
    """The error in a commit's subject; "" if it is right."""
    if len(subject) > MOST_SUBJECT:
        return f"the subject has {len(subject)} characters, at most {MOST_SUBJECT}"
    if not SUBJECT.match(subject):
        return "the subject does not begin with its subsystem, as in \"ring: reject stale leases after takeover\""
    return ""


def git(root, *words):
    return subprocess.run(["git", "-c", "safe.directory=*", "-c", "core.quotepath=off", "-C", root, *words], capture_output=True, text=True,
                          errors="replace")


def commits_since(root, since):
    """Hashes after `since`, oldest first; None if the history does not reach back to it."""
    if git(root, "merge-base", "--is-ancestor", since, "HEAD").returncode != 0:
        return None
    return git(root, "rev-list", "--no-merges", "--reverse", f"{since}..HEAD").stdout.split()


def check(root, since):
    glossary, offences, count = read_glossary(), [], 0
    commits = commits_since(root, since)
    if commits is None:
        print(f"the history does not reach back to {since}: only HEAD is checked")
        commits = git(root, "rev-list", "--no-merges", "-1", "HEAD").stdout.split()
    for commit in commits + [""]:
        name = commit[:12] or "not committed yet"
        if commit:
            count += 1
            subject = git(root, "log", "-1", "--format=%s", commit).stdout.strip()
            if why := subject_offence(subject):
                offences.append(f"{name} \"{subject}\": {why}")
            diff = git(root, "show", "--format=", "-U0", "-M", commit, "--", ".", *EXEMPT).stdout
        else:
            diff = git(root, "diff", "-U0", "-M", "HEAD", "--", ".", *EXEMPT).stdout
        offences += [f"{name} adds \"{term}\" (write: {instead}): {line[:120]}" for term, line, instead in offending_terms(diff, glossary)]
    return count, offences


if __name__ == "__main__":
    tree = sys.argv[1]
    if git(tree, "rev-parse", "HEAD").returncode != 0:
        print("no git history: no commit is checked")
        sys.exit(77)
    if len(sys.argv) > 2:
        first = sys.argv[2]
    else:
        with open(os.path.join(HERE, "first_checked_commit"), encoding="utf-8") as text:
            first = text.read().strip()
    checked, found = check(tree, first)
    for offence in found:
        print(offence)
    print(f"{checked} commits, {len(found)} offences")
    sys.exit(1 if found else 0)
