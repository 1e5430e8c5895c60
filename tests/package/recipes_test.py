#!/usr/bin/python3
"""The Conan recipe and the vcpkg port, as far as that can be seen without a network.

  recipes_test.py SOURCE CMAKE VERSION

What is not here is `conan create` and `vcpkg install` themselves: see docs/packaging.md.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

VERSION, CMAKE, SOURCE = sys.argv.pop(), sys.argv.pop(), pathlib.Path(sys.argv.pop())
PORT = SOURCE / "packaging/vcpkg/coppice"

# The functions of vcpkg, as ones that say what they were called with.
STUBS = "\n".join(f"""
function({name})
    file(APPEND "${{SAID}}" "{name} ${{ARGN}}\\n")
endfunction()""" for name in ("vcpkg_check_linkage", "vcpkg_cmake_configure",
                              "vcpkg_cmake_install", "vcpkg_cmake_config_fixup",
                              "vcpkg_fixup_pkgconfig", "vcpkg_install_copyright"))


class Vcpkg(unittest.TestCase):
    def test_the_manifest_is_of_this_version_and_names_what_the_library_needs(self):
        manifest = json.loads((PORT / "vcpkg.json").read_text())
        self.assertEqual(manifest["name"], "coppice")
        self.assertEqual(manifest["version-semver"], VERSION)
        names = [each if isinstance(each, str) else each["name"]
                 for each in manifest["dependencies"]]
        needed = re.findall(r"find_dependency\((\w+)\)",
                            (SOURCE / "cmake/coppiceConfig.cmake.in").read_text())
        for package in set(needed) - {"Threads"}:
            self.assertIn(package.lower(), names)

    def run_port(self, port, folder):
        script = pathlib.Path(folder, "port.cmake")
        script.write_text(f'set(SAID "{folder}/said")\nset(PORT coppice)\n'
                          f'set(CURRENT_PORT_DIR "{port}")\n'
                          f'set(CURRENT_PACKAGES_DIR "{folder}/packages")\n{STUBS}\n'
                          f'include("{port}/portfile.cmake")\n')
        return subprocess.run([CMAKE, "-P", script], capture_output=True, text=True)

    def test_the_portfile_configures_this_checkout_with_options_that_exist(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_port(PORT, folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            calls = pathlib.Path(folder, "said").read_text()
            usage = pathlib.Path(folder, "packages/share/coppice/usage").read_text()
        self.assertIn("coppice::coppice", usage)
        self.assertIn(f"SOURCE_PATH;{SOURCE.resolve()}", calls)
        build = (SOURCE / "CMakeLists.txt").read_text()
        options = re.findall(r"-D(COPPICE_\w+)=", calls)
        self.assertTrue(options)
        for option in options:
            self.assertRegex(build, rf"(option|set)\({option} ")
        place = re.search(r"CONFIG_PATH;lib/(\S+)", calls).group(1)
        self.assertIn("/" + place, (SOURCE / "cmake/coppice_install.cmake").read_text())

    def test_a_port_outside_of_a_checkout_says_so_and_builds_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            port = pathlib.Path(folder, "some/ports/coppice")
            shutil.copytree(PORT, port)
            done = self.run_port(port, folder)
            self.assertFalse(pathlib.Path(folder, "said").exists())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--overlay-ports", done.stderr)


class Conan(unittest.TestCase):
    def test_the_recipes_are_python(self):
        for recipe in ("conanfile.py", "packaging/conan/conanfile.py"):
            compile((SOURCE / recipe).read_text(), recipe, "exec")

    def test_the_recipe_exports_all_that_the_build_includes(self):
        recipe = (SOURCE / "conanfile.py").read_text()
        exported = re.search(r"exports_sources = \((.*?)\)", recipe, re.S).group(1)
        for folder in re.findall(r"(?:include\(|GLOB\w* \w+ CONFIGURE_DEPENDS )(\w+)/",
                                 (SOURCE / "CMakeLists.txt").read_text()):
            self.assertIn(f'"{folder}/*"', exported)
        for option in re.findall(r'"([A-Z]+)"', re.search(r"for part in \((.*?)\)", recipe).group(1)):
            self.assertIn(f"(COPPICE_{option} ", (SOURCE / "CMakeLists.txt").read_text())

    def test_conan_reads_the_version_from_the_header(self):
        conan = shutil.which("conan")
        if conan is None:
            self.skipTest("Conan is not installed")
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run([conan, "inspect", SOURCE / "conanfile.py", "--format=json"],
                                  capture_output=True, text=True, env={"CONAN_HOME": home,
                                                                       "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["version"], VERSION)


if __name__ == "__main__":
    unittest.main(verbosity=1)
