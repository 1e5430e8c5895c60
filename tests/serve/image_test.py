#!/usr/bin/python3
"""packaging/Dockerfile, as far as that can be seen without Docker.

  image_test.py SERVER SOURCE

What is not here is `docker build` itself: see docs/packaging.md.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

SOURCE, SERVER = pathlib.Path(sys.argv.pop()), sys.argv.pop()
PATIENCE = 60  # seconds until something awaited counts as missing: only a hang takes that long
PACKAGES = {"libssl": "libssl3", "libcrypto": "libssl3", "libz": "zlib1g",
            "libnghttp2": "libnghttp2-14", "libstdc++": "libstdc++6"}


def stages():
    """Returns the instructions of each stage, as pairs of a word and its text."""
    text = (SOURCE / "packaging/Dockerfile").read_text(encoding="ascii")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    made = []
    for word, rest in (line.split(" ", 1) for line in lines if line):
        if word == "FROM":
            made.append([])
        made[-1].append((word, rest))
    return made


def arguments(stage, wanted):
    """Returns the arguments of the last such instruction, without its flags and the word CMD."""
    text = [rest for word, rest in stage if word == wanted][-1]
    return json.loads(text[text.index("["):])


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


class Image(unittest.TestCase):
    def setUp(self):
        self.build, self.image = stages()
        ports = {"8080": free_port(), "9090": free_port()}
        entry = arguments(self.image, "ENTRYPOINT")
        check = arguments(self.image, "HEALTHCHECK")
        self.assertEqual((entry[0], check[0]), ("coppice-serve", "coppice-serve"))
        here = lambda words: [SERVER] + [ports.get(w, w) for w in words[1:]]
        self.started = here(entry + arguments(self.image, "CMD"))
        self.health = here(check)

    def run_here(self, command):
        return subprocess.run(command, timeout=PATIENCE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)

    def test_what_is_copied_is_enough_to_configure_the_build(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for word, rest in self.build:
                if word != "COPY":
                    continue
                *sources, to = rest.split()
                for source in sources:
                    self.assertTrue((SOURCE / source).exists(), source)
                    if (SOURCE / source).is_dir():
                        shutil.copytree(SOURCE / source, directory + to)
                    else:
                        os.makedirs(directory + to, exist_ok=True)
                        shutil.copy(SOURCE / source, directory + to)
            run = [rest for word, rest in self.build if word == "RUN"][-1]
            configure, build, install = [shlex.split(c) for c in run.split("&&")]
            configure = [directory + w if w.startswith("/") else w for w in configure]
            ended = self.run_here(configure)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            target = build[build.index("--target") + 1]
            known = subprocess.run(["ninja", "-C", str(root / "build"), "-t", "query", target],
                                   stdout=subprocess.DEVNULL, check=False)
            self.assertEqual(known.returncode, 0, target)
            self.assertIn("server", install)

    def test_the_image_has_the_libraries_of_the_server_and_no_root(self):
        installed = " ".join(rest for word, rest in self.image if word == "RUN").split()
        for library in re.findall(r"^\s*(\S+)\.so", subprocess.check_output(
                ["ldd", SERVER], text=True), flags=re.MULTILINE):
            if library in PACKAGES:
                self.assertIn(PACKAGES[library], installed)
        user = [rest for word, rest in self.image if word == "USER"][-1]
        self.assertTrue(all(int(number) > 0 for number in user.split(":")))
        copied = [rest for word, rest in self.image if word == "COPY"]
        self.assertTrue(all(c.startswith("--from=build ") for c in copied), copied)

    def test_the_server_starts_and_is_healthy_until_it_ends(self):
        self.assertEqual(self.run_here(self.started + ["--check"]).returncode, 0)
        before = self.run_here(self.health)
        self.assertEqual(before.returncode, 1)
        self.assertIn("/livez", before.stderr)
        server = subprocess.Popen(self.started, stdout=subprocess.PIPE, text=True)
        while not (line := server.stdout.readline()).startswith("listening"):
            self.assertNotEqual(line, "", "the server has ended")
        healthy = self.run_here(self.health)
        self.assertEqual((healthy.returncode, healthy.stderr), (0, ""))
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0)
        server.stdout.close()
        self.assertEqual(self.run_here(self.health).returncode, 1)


if __name__ == "__main__":
    unittest.main()
