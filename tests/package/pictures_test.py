#!/usr/bin/python3
"""The pictures of docs/images are those that scripts/diagrams.py draws of this tree.

  pictures_test.py ROOT

Also plants faults in a small tree: each must be found.
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
root = os.path.realpath(sys.argv[1])
sys.path.insert(0, os.path.join(root, "scripts"))
import house  # noqa: E402

FILES = {
    "include/coppice/base/clock.hpp": "",
    "include/coppice/base/internal/check.hpp": "",
    "include/coppice/exec/then.hpp": "#include <coppice/base/clock.hpp>\n",
    "include/coppice/exec/internal/invoke.hpp": "#include <coppice/base/internal/check.hpp>\n",
    "include/coppice/io/socket.hpp": "#include <coppice/exec/then.hpp>\n",
    "src/io/socket.cpp": "#include <coppice/exec/internal/invoke.hpp>\n"
                         "#include <coppice/base/clock.hpp>\n",
}


def check(tree):
    made = subprocess.run([sys.executable, "-B", f"{root}/scripts/diagrams.py", "--check", tree],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return made.stderr


def write(tree, files):
    for name, text in files.items():
        os.makedirs(os.path.dirname(f"{tree}/{name}"), exist_ok=True)
        with open(f"{tree}/{name}", "w", encoding="utf-8") as file:
            file.write(text)


def expect(condition, what):
    if not condition:
        sys.exit(f"pictures_test.py: {what}")


old = check(root)
expect(old == "", old)

with tempfile.TemporaryDirectory() as tree:
    write(tree, FILES)
    small = house.House(tree)
    expect(small.front == {"base": 1, "exec": 1, "io": 1}, f"front headers: {small.front}")
    expect(small.lent == {("exec", "io"): {"invoke"}}, f"seams: {small.lent}")
    expect([small.floor(r) for r in ("base", "exec", "io")] == [0, 1, 2], "floors")
    expect(list(small.arrows()) == [("exec", "base"), ("io", "exec")], "arrows that follow")
    os.makedirs(f"{tree}/docs/images")
    expect("docs/images/house.svg is old" in check(tree), "a missing picture was not found")
    for name in os.listdir(f"{root}/docs/images"):
        if name.endswith(".svg"):
            shutil.copy(f"{root}/docs/images/{name}", f"{tree}/docs/images/{name}")
    old = check(tree)
    expect(old.split() == ["docs/images/house.svg", "is", "old:", "run", "scripts/diagrams.py"],
           f"the picture of another tree: {old}")
    write(tree, {"include/coppice/base/clock.hpp": "#include <coppice/io/socket.hpp>\n"})
    expect("rooms include each other" in check(tree), "a circle was not found")
