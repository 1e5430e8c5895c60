// Planted faults for the law of hops.hpp, and their lawful twins.
#pragma once

#include "example.hpp"

namespace tidy {

inline const std::string path_head = "| | file | function | what happens |\n|---|---|---|---|\n";

inline const std::vector<example> hops_examples = {
    {"dead_hops",
     "declared in a class, defined outside, a template's, an operator, and two files",
     {{library,
       "struct x {\n  [[nodiscard]] bool begin(int) noexcept;\n  void operator()(int);\n};\n"
       "template <class T = int>\nvoid pool<T>::worker::loop() noexcept {}\n"},
      {source, "int* x::take(int a) { return a ? 0 : f(a); }\n"},
      {"docs/architecture.md",
       path_head + "| 1 | `pool/x.hpp` | `begin`, `x::operator()`, `loop` | |\n"
                   "| 2 | `pool/x.hpp`, `src/pool/x.cpp` | `begin`, `take` | |\n\n`g`\n"}},
     {}},
    {"dead_hops",
     "a file that is gone, and functions that are only called or belong to another class",
     {{library, "bool f() { g(); return a && h(); }\nint i = x.j();\n"},
      {"docs/architecture.md", path_head + "| 1 | `pool/y.hpp` | `f` | |\n"
                                           "| 2 | `pool/x.hpp` | `g` | |\n"
                                           "| 3 | `pool/x.hpp` | `h` | |\n"
                                           "| 4 | `pool/x.hpp` | `j` | |\n"
                                           "| 5 | `pool/x.hpp` | `y::f` | |\n"
                                           "| 6 | `pool/x.hpp` | f | |\n"
                                           "| 7 | `pool/x.hpp` | `f` | |\n"}},
     {3, 4, 5, 6, 7, 8}},
    {"dead_hops",
     "nine hops, and nine that are explained",
     {{library, "int f();\n"},
      {"docs/architecture.md", path_head + lines_of(9, "| 1 | `pool/x.hpp` | `f` | |") +
                                   "\nMore than eight: it cannot be shorter.\n\n" + path_head +
                                   lines_of(9, "| 1 | `pool/x.hpp` | `f` | |")}},
     {11}},

    {"missing_files",
     "what exists, a placeholder, and a header of the system",
     {{library, ""},
      {"docs/architecture.md", "`pool/x.hpp` `include/coppice/pool/x.hpp` `a/<room>.hpp` `x.hpp`"}},
     {}},
    {"missing_files",
     "what does not exist",
     {{"docs/architecture.md", "\nopen `pool/y.hpp`\n"}, {"docs/io.md", "`pool/y.hpp`\n"}},
     {2}},
};

}  // namespace tidy
