"""A machine that lacks what programs take for granted. Usage: test_surroundings.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
from live import CAROUSEL, HAS_EXTRAS, PIPELINES, SMALL, Live, main, os, subprocess
from small_disk import NAMESPACE

DEMO = os.path.join(PIPELINES, "demo.toml")


class Surroundings(Live):
    def below(self, prefix, *words):
        """`prefix` becomes the program, which gets `words`."""
        return subprocess.run([*prefix, CAROUSEL, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)

    def in_deleted_directory(self, *words):
        return self.below(["sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', "sh"], *words)

    def test_a_deleted_working_directory_is_named_where_it_is_needed(self):
        done = self.in_deleted_directory("run", DEMO, "--name", self.name, *SMALL, "--frames", "3", "--out", "p_%d.png")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("the working directory can't be read: No such file or directory; it was deleted: change to a folder that exists",
                      done.stderr)
        of_extras = (("new", "stage", "mine"), ("bench", "raster", "--json", "r.json")) if HAS_EXTRAS else ()
        for words in (("graph", "demo.toml"), ("run", "demo.toml"), *of_extras):
            done = self.in_deleted_directory(*words)
            self.assertIn(done.returncode, (2, 75), done.stderr)
            self.assertNotIn("a bug in Carousel", done.stderr)

    def test_a_deleted_working_directory_does_not_matter_where_it_is_not_needed(self):
        done = self.in_deleted_directory("run", DEMO, "--name", self.name, *SMALL, "--frames", "3")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_missing_dev_null_is_named_instead_of_a_program(self):
        # A device folder of this test's own, which has shared memory and nothing else.
        script = 'mkdir shm && mount --bind /dev/shm shm && mount -t tmpfs tmpfs /dev && mkdir /dev/shm && mount --bind shm /dev/shm && exec "$@"'
        prefix = [*NAMESPACE, "sh", "-c", script, "sh"]
        tried = subprocess.run([*prefix, "true"], cwd=self.folder, capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            self.skipTest(f"no mount namespace here: {tried.stderr.strip()}")
        os.rmdir(os.path.join(self.folder, "shm"))
        for words in (("run",), ("up", "-d")):
            done = self.below(prefix, words[0], DEMO, *words[1:], "--name", self.name, *SMALL, "--frames", "3")
            os.rmdir(os.path.join(self.folder, "shm"))
            self.assertEqual(done.returncode, 74, done.stderr)
            self.assertIn("cannot open /dev/null: No such file or directory", done.stderr)
            self.assertNotIn("check that it is built and executable", done.stderr)


if __name__ == "__main__":
    main()
