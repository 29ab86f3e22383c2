"""The runner of campaigns, and its catalogue against a build: each row is a command that exists. Usage: test_run.py BUILD"""
import contextlib
import functools
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402
from processes import is_alive, wait_for  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
PASSES = "sh -c 'echo seed $CAROUSEL_TEST_SEED, scale $CAROUSEL_TEST_SCALE'"


@functools.cache
def output_of(*command):
    done = subprocess.run(command, cwd=run.ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


class Catalogue(unittest.TestCase):
    def check_script(self, words):
        """words: the script's path, and its words; {build} is replaced."""
        with open(os.path.join(run.ROOT, words[0]), encoding="utf-8") as f:
            text = f.read()
        flags = [w for w in words if w.startswith("--")]
        if flags:
            help_text = output_of(sys.executable, "-B", words[0], BUILD, "--help")
            if help_text.startswith("no interpreter here"):   # tests/stages/python/interpreter.py
                return
            self.assertEqual([f for f in flags if f not in help_text], [], help_text)
        for before, word in zip(words, words[1:]):
            if not before.startswith("--") and not word.startswith("--") and word != BUILD and not os.path.exists(os.path.join(run.ROOT, word)):
                self.assertIn(word, text)   # a class of tests

    def test_each_row_names_a_command_that_exists_and_words_that_it_knows(self):
        known = run.known_targets(BUILD)
        for row in [r for name in run.CATALOGUE if "from" not in run.CATALOGUE[name] for r in run.rows_of(name, BUILD)]:
            absent = run.missing([n for n in row.needs if n in ("ucx", "python")], BUILD)
            # The everyday tier builds no test for a GPU: ./tests/run --all checks these rows.
            if absent or (row.campaign == "gpu" and not ({"carousel-send"} <= known and os.path.exists(os.path.join(BUILD, "test_device_cuda")))):
                continue
            words = row.command(BUILD, 1)
            words = words[2:] if words[0] in ("env", sys.executable) else words
            with self.subTest(f"{row.campaign}: {row.name}"):
                if words[0] == "ctest":
                    pattern, label = words[words.index("-R") + 1], words[words.index("-L") + 1]
                    self.assertTrue([t["name"] for t in run.ctests(BUILD, label) if re.search(pattern, t["name"])], pattern)
                elif words[0].endswith(".py"):
                    self.check_script(words)
                else:
                    program = os.path.basename(words[0])
                    self.assertTrue(program in known, f"{program} is not a target")
                    if program.startswith("test_") and os.path.exists(words[0]):   # the everyday tier does not build all
                        listed = output_of(words[0], *words[1:], "--list-tests")
                        self.assertRegex(listed, r"(?m)^[1-9]\d* (matching )?test case")

    def test_each_campaign_has_targets_that_the_build_has(self):
        for name, campaign in run.CATALOGUE.items():
            with self.subTest(name):
                self.assertTrue(campaign["proves"].endswith("."))
                self.assertGreater(len(run.rows_of(name, BUILD)), 0)
                if not run.missing([n for n in campaign.get("needs", []) if n != "gpu"], BUILD):
                    optional = {"python_tested"}   # of campaign ports, in a build without the module
                    self.assertEqual(set(campaign.get("targets", [])) - set(run.targets(name, BUILD)) - optional, set())

    def test_names_are_unique_and_those_that_tests_run_knows(self):
        for name in run.CATALOGUE:
            names = [r.name for r in run.rows_of(name, BUILD)]
            self.assertEqual(len(names), len(set(names)), name)
        with open(os.path.join(run.ROOT, "tests", "run"), encoding="utf-8") as f:
            script = f.read()
        listed, = re.findall(r'^case \$campaign in "" \| (.*)\) ;;', script, re.M)
        self.assertEqual(sorted(listed.split(" | ")), sorted([*run.CATALOGUE, "slice"]))


class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(setattr, run, "CATALOGUE", run.CATALOGUE)

    def run_rows(self, *rows, options=(), **campaign):
        """(exit code, output, the results by row and seed) of a campaign with these rows."""
        run.CATALOGUE = {"fake": {"rows": [{"name": f"row {k}", "seconds": 1, **r} for k, r in enumerate(rows)], **campaign}}
        keep = os.path.join(self.folder, "fake.json")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = run.main(["fake", BUILD, "--keep", keep, "--commit", "here", *options])
        with open(keep, encoding="utf-8") as f:
            return code, out.getvalue(), {(r["row"], r["seed"]): r for r in json.load(f)["rows"]}

    def test_a_row_receives_its_seed_and_its_scale(self):
        code, text, results = self.run_rows({"run": PASSES, "rounds": 2, "scale": 4}, {"run": PASSES}, options=["--seed", "5"])
        self.assertEqual(code, 0)
        self.assertEqual({key: r["output"] for key, r in results.items()},
                         {("row 0", 5): ["seed 5, scale 4"], ("row 0", 6): ["seed 6, scale 4"], ("row 1", 5): ["seed 5, scale 1"]})
        self.assertIn("| here |", text.splitlines()[-1])
        self.assertIn(r"--only 'row\|x'`", self.run_rows({"run": PASSES}, options=["--only", "row|x"])[1].splitlines()[-1])   # in a table
        self.assertRegex(text.splitlines()[-1], r"^\| fake \| `./tests/run --campaign fake -- .*; seeds 5-6; \d+ s \|$")

    def test_options_replace_rounds_and_scale_of_the_catalogue(self):
        results = self.run_rows({"run": PASSES, "rounds": 9, "scale": 4}, options=["--seed", "5", "--rounds", "2", "--scale", "3"])[2]
        self.assertEqual([r["output"] for r in results.values()], [["seed 5, scale 3"], ["seed 6, scale 3"]])

    def test_a_row_that_fails_prints_its_output_and_the_command_that_repeats_it(self):
        code, text, results = self.run_rows({"run": "sh -c 'echo the cause; exit 3'"}, {"run": "/nowhere/program"}, {"run": PASSES}, options=["--seed", "5"])
        self.assertEqual([code, *(r["how"] for r in results.values())], [1, "failed", "failed", "passed"])
        self.assertIn("the cause\nagain: CAROUSEL_TEST_SEED=5 CAROUSEL_TEST_SCALE=1 sh -c 'echo the cause; exit 3'\n", text)
        self.assertIn("row 0 | 0 | 1 failed; seeds 5 (failed: exit code 3)", text)
        self.assertIn("/nowhere/program cannot be started: No such file", text)
        self.assertIn("1 passed, 2 failed;", text.splitlines()[-1])

    def test_a_skipped_row_is_neither_passed_nor_failed_and_has_the_cause(self):
        skips = {"run": f"sh -c 'echo skipped: no ip here; exit {run.SKIPPED}'"}
        code, text, results = self.run_rows(skips)
        self.assertEqual([code, *((r["how"], r["detail"]) for r in results.values())], [run.SKIPPED, ("skipped", "no ip here")])
        self.assertIn("1 skipped (no ip here)", text)
        self.assertEqual(self.run_rows(skips, {"run": PASSES})[0], 0)

    def test_a_row_whose_needs_are_missing_is_skipped_without_being_run(self):
        before, run.missing = run.missing, lambda needs, build: "one GPU of two" if needs else ""
        self.addCleanup(setattr, run, "missing", before)
        code, _, results = self.run_rows({"run": "false", "needs": ["two_gpus"]})
        self.assertEqual([code, *((r["how"], r["detail"]) for r in results.values())], [run.SKIPPED, ("skipped", "one GPU of two")])

    def test_a_row_at_its_limit_is_cut_off_and_may_end_its_processes(self):
        ended = os.path.join(self.folder, "ended")
        code, _, results = self.run_rows({"run": f"sh -c 'trap \"touch {ended}; exit\" INT; echo begun; while :; do sleep 0.05; done'", "limit": 0.3})
        self.assertEqual([code, *((r["how"], r["output"]) for r in results.values())], [1, ("cut off", ["begun"])])
        self.assertTrue(os.path.exists(ended))

    def test_processes_of_its_group_end_with_a_row(self):
        _, _, results = self.run_rows({"run": "sh -c 'sleep 60 & echo $!'"})
        pid, = next(iter(results.values()))["output"]
        wait_for("the end of the process", lambda: not is_alive(int(pid)), 10)

    def test_rows_that_do_not_fit_into_the_time_are_listed_as_not_run(self):
        code, text, results = self.run_rows({"run": PASSES, "seconds": 100}, {"run": PASSES}, options=["--seconds", "50", "--seed", "5"])
        self.assertEqual((code, list(results)), (0, [("row 1", 5)]))
        self.assertIn("row 0 | - | not run, seed 5", text)
        self.assertIn("1 passed, 1 not run;", text)
        self.assertEqual(self.run_rows({"run": PASSES}, options=["--seconds", "0", "--seed", "6"])[0], 2)

    def test_a_campaign_that_was_cut_off_repeats_only_rows_that_have_not_passed(self):
        count = os.path.join(self.folder, "count")
        rows = {"run": f"sh -c 'echo x >> {count}'"}, {"run": f"sh -c 'test -e {count}2'"}
        code, _, first = self.run_rows(*rows)
        open(count + "2", "w", encoding="utf-8").close()
        self.assertEqual((code, self.run_rows(*rows)[0]), (1, 0))   # with the seed of the first call
        self.assertEqual(self.run_rows(*rows, options=["--only", "row 0"])[0], 0)
        with open(count, encoding="utf-8") as f:
            self.assertEqual(f.read(), "x\n")
        seed = min(s for _, s in first)
        _, _, results = self.run_rows(*rows, options=["--seed", str(seed + 1), "--only", "row 0"])
        self.assertEqual(sorted(results), [("row 0", seed), ("row 0", seed + 1), ("row 1", seed)])

    def test_results_of_another_commit_are_not_those_of_this_one(self):
        self.assertEqual(run.kept(os.path.join(self.folder, "none.json"), {}), [])
        self.run_rows({"run": PASSES})
        path = os.path.join(self.folder, "fake.json")
        with open(path, encoding="utf-8") as f:
            where = json.load(f)["about"]
        self.assertEqual((len(run.kept(path, where)), run.kept(path, {**where, "commit": "other"})), (1, []))

    def test_ctest_and_unittest_end_with_0_if_they_skip_all_tests_and_the_row_is_skipped(self):
        tests = "\n100% tests passed, 0 tests failed out of {}\nThe following tests did not run:\n\t1867 - test_gpu_runs:a (b) (Skipped)\n"
        self.assertEqual(run.judged(0, tests.format(1)), ("skipped", "1 of 1 tests skipped"))
        self.assertEqual(run.judged(0, tests.format(1).replace(", 0 tests failed", ""))[0], "skipped")   # ctest of 2025
        self.assertEqual(run.judged(0, tests.format(3)), ("passed", "1 of 3 tests skipped"))
        self.assertEqual(run.judged(8, tests.format(1)), ("failed", "exit code 8"))
        unit = "test_it (T.test_it) ... skipped 'no nft'\nRan {} tests in 0.1s\n\nOK (skipped=1)\n"
        self.assertEqual(run.judged(0, unit.format(2)), ("passed", "1 of 2 tests skipped: no nft"))
        self.assertEqual(run.judged(0, unit.format(1).replace("tests", "test"))[0], "skipped")
        self.assertEqual(run.judged(0, "40 kills, lost 0"), ("passed", ""))

    def test_a_test_of_ctest_is_a_row_by_its_exact_name(self):
        row = run.tests_row({"name": "hosts: a (b) 100% {c}", "properties": [{"name": "TIMEOUT", "value": 300.0}, {"name": "LABELS", "value": ["gpu"]}]})
        self.assertEqual(run.Row(campaign="fake", **row).command(BUILD, 1)[-2:], ["-R", r"^hosts: a \(b\) 100% {c}$"])
        self.assertEqual((row["seconds"], row["limit"], row["needs"]), (50, 360, ["gpu"]))


class Slice(unittest.TestCase):
    ROWS = [run.Row(f"campaign {k % 4}", f"row {k}", "true", seconds=5 + k % 30, rounds=7) for k in range(60)]

    def names(self, commit, seconds=240):
        seed, rows = run.slice_plan(self.ROWS, seconds, commit)
        return seed, [r.name for r in rows]

    def test_the_commit_alone_chooses_rows_and_seed(self):
        self.assertEqual(self.names("a"), self.names("a"))
        self.assertNotEqual(self.names("a")[0], self.names("b")[0])
        self.assertNotEqual(self.names("a")[1], self.names("b")[1])

    def test_it_is_of_all_campaigns_and_fits_into_its_time(self):
        for commit in "abcdefgh":
            rows = run.slice_plan(self.ROWS, 240, commit)[1]
            self.assertEqual({r.campaign for r in rows}, {r.campaign for r in self.ROWS})
            self.assertTrue(220 < sum(r.seconds for r in rows) <= 240)
            self.assertEqual({r.rounds for r in rows}, {1})
            self.assertEqual(len(rows), len({r.name for r in rows}))

    def test_a_slice_of_this_build_has_rows_of_several_campaigns(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(run.main(["slice", BUILD, "--commit", "b", "--list"]), 0)
        first, *rows = out.getvalue().splitlines()
        self.assertRegex(first, r"^slice of b: seed \d+$")
        self.assertGreaterEqual(len({line.split()[0] for line in rows}), 4)
        self.assertLessEqual(sum(float(re.search(r" (\d+) s  ", line)[1]) for line in rows), 240)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
