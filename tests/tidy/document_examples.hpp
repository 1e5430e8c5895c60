// Planted faults for the checks of documents, and their lawful twins.
#pragma once

#include "example.hpp"

namespace tidy {

inline const text_at program = {
    "examples/01_x.cpp", "int main() {\n    // [part]\n    f();\n      g();\n    // [/part]\n}\n"};
inline const std::string whole_quote =
    "<!-- example: examples/01_x.cpp -->\n```cpp\n" + program.text + "```\n";
inline const std::string part_quote = "<!-- example: examples/01_x.cpp [part] -->\n";
inline const std::vector<example> document_examples = {
    {"quotes", "a whole file", {program, {"README.md", "Text.\n" + whole_quote}}, {}},
    {"quotes", "a part", {program, {"README.md", part_quote + "```cpp\nf();\n  g();\n```\n"}}, {}},
    {"quotes",
     "a changed line",
     {program, {"README.md", part_quote + "```cpp\nf();\n  h();\n```\n"}},
     {4}},
    {"quotes", "a missing line", {program, {"README.md", part_quote + "```cpp\nf();\n```\n"}}, {4}},
    {"quotes",
     "a line too much",
     {program, {"README.md", part_quote + "```cpp\nf();\n  g();\nh();\n```\n"}},
     {5}},
    {"quotes", "an example that is gone", {{"README.md", whole_quote}}, {1}},
    {"quotes",
     "a part that is gone",
     {program, {"README.md", "<!-- example: examples/01_x.cpp [other] -->\n```cpp\nf();\n```\n"}},
     {1}},
    {"quotes",
     "a mark without a block",
     {program, {"README.md", part_quote + "\n```cpp\nf();\n```\n"}},
     {1, 3}},
    {"quotes", "typed by hand", {{"README.md", "```sh\n./run\n```\n\n```cpp\nf();\n```\n"}}, {5}},
    {"quotes", "typed by hand in a decision", {{"docs/decisions/1.md", "```cpp\nf();\n```\n"}}, {}},
    {"bare_snippets",
     "includes and a using, then a part without",
     {{"docs/a.md",
       "```sh\n./run\n```\n```cpp\n#include <coppice/io.hpp>\nusing namespace coppice;\n```\n"
       "```cpp\nf();\n```\n"}},
     {}},
    {"bare_snippets",
     "an alias will do",
     {{"docs/a.md",
       "```cpp\n#include <coppice/io.hpp>\nnamespace ex = coppice::execution;\n```\n"}},
     {}},
    {"bare_snippets", "no includes", {{"docs/a.md", "# A\n```cpp\nusing x = int;\n```\n"}}, {2}},
    {"bare_snippets",
     "no using, and an include of a later block",
     {{"docs/a.md", "```cpp\n#include <coppice/io.hpp>\n```\n```cpp\nusing x = int;\n```\n"}},
     {1}},
    {"bare_snippets",
     "not of pages without C++, elsewhere, or in a decision",
     {{"docs/a.md", "```sh\n./run\n```\n"},
      {"README.md", "```cpp\nf();\n```\n"},
      {"docs/decisions/1.md", "```cpp\nf();\n```\n"}},
     {}},
    {"dead_links",
     "to pages, folders, headers, parts and other places",
     {{"README.md",
       "[a](docs/a.md) [b](docs/) [c](docs/a.md#c)\n[d](#d) [e](https://e.org/x)\n"
       "```sh\n[](int n)\n```\n"},
      {"docs/a.md", "[f](../include/coppice/x.hpp) [g](results/report.md) [h](a.md)\n"},
      {"include/coppice/x.hpp", ""}},
     {}},
    {"dead_links",
     "to a page that is gone, twice, and to one that is elsewhere",
     {{"README.md", "[a](docs/b.md) [b](docs/a.md)\n[a](docs/b.md)\n"},
      {"docs/a.md", "[r](README.md)\n"}},
     {1, 2, 1}},
    {"quotes", "a block without end", {{"README.md", "```sh\n./run\n"}}, {1}},
    {"proven_conformance",
     "tests that exist, and a clause that is missing",
     {{"docs/conformance.md",
       "| clause | state | tests | |\n|---|---|---|---|\n"
       "| [a] | done | `exec/x_test: exec_x.works`, `exec/x_test: typed.works` | why |\n"
       "| [b] | missing | | |\n"},
      {"tests/exec/x_test.cpp",
       "TEST(exec_x, works) {}\nTYPED_TEST(typed,\n           works) {}\n"}},
     {}},
    {"proven_conformance",
     "tests that are gone, and none",
     {{"docs/conformance.md",
       "| [a] | done | `exec/x_test: exec_x.fails` | |\n"
       "| [b] | differs | `exec/y_test: exec_x.works`, `exec_x.works` | |\n| [c] | done | | |\n"},
      {"tests/exec/x_test.cpp", "TEST(exec_x, works) {}\n"}},
     {1, 2, 2, 3}},
};

}  // namespace tidy
