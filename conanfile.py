"""Conan 2 recipe: `conan create .` builds and packages this checkout, and tests the package."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class Coppice(ConanFile):
    name = "coppice"
    description = "A C++20 runtime for low-latency concurrency"
    license = "Apache-2.0 WITH LLVM-exception"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    requires = "zlib/[>=1.2.11 <2]"
    exports_sources = ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*")
    test_package_folder = "packaging/conan"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include/coppice/base/version.hpp"))
        self.version = ".".join(re.findall(r"^#define COPPICE_VERSION_[A-Z]+ (\d+)$", header, re.M))

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("APPS", "TESTS", "EXAMPLES", "WARNINGS"):
            toolchain.cache_variables["COPPICE_" + part] = False
        toolchain.cache_variables["COPPICE_TLS"] = False  # the recipe does not require OpenSSL
        toolchain.cache_variables["COPPICE_MPI"] = False
        toolchain.cache_variables["COPPICE_HTTP2"] = "OFF"  # nor nghttp2
        toolchain.cache_variables["COPPICE_HTTP"] = True  # an error without zlib, not a silent loss
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        for unused in ("lib/cmake", "lib/pkgconfig", "share"):  # Conan makes its own
            rmdir(self, os.path.join(self.package_folder, unused))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "coppice")
        self.cpp_info.set_property("cmake_target_name", "coppice::coppice")
        self.cpp_info.set_property("pkg_config_name", "coppice")
        self.cpp_info.libs = ["coppice"]
        self.cpp_info.system_libs = ["pthread"]
