// Planted faults for the law of prose.hpp, and their lawful twins.
#pragma once

#include "example.hpp"

namespace tidy {

inline constexpr const char* plain_header = "include/coppice/trace/x.hpp";
inline constexpr const char* plain_test = "tests/trace/x_test.cpp";
inline constexpr const char* plain_page = "docs/glossary.md";

inline const std::vector<example> prose_examples = {
    {"unplain_words",
     "actors without a name",
     {{plain_header,
       "// Called by whoever took it.\nint a;  // of who took it\n"
       "// Who took it, runs it.\n// Runs it. Nobody waits.\n"}},
     {1, 2, 3, 4}},
    {"unplain_words",
     "over the end of a line",
     {{plain_header, "// The source is left to\n// who requests it, and none\n// but it.\n"}},
     {1, 2}},
    {"unplain_words",
     "no longer and no more",
     {{plain_header, "// It runs no more.\nint a;  // it waits no more\n// No more than two.\n"}},
     {1, 2}},
    {"unplain_words",
     "results without a verb",
     {{plain_header,
       "// True: it was set.\nbool f();\n// Whether it is set.\nbool g();\n"
       "// Returns true: always. It says whether.\nint a;  // The same, but later.\n"}},
     {1, 3, 6}},
    {"unplain_words",
     "spelling",
     {{plain_page, "# Neighbours\n\nIt is cancelled.\n| a | his |\n"}},
     {1, 3, 4}},
    {"unplain_words",
     "in the names of tests",
     {{plain_test,
       "TEST(a, nobody_waits) {}\nTYPED_TEST_P(b,\n    it_is_cancelled) {}\n"
       "TEST_F(he, who_is_a_suite) {}\n"}},
     {1, 3, 4}},
    {"unplain_words",
     "in code, literals, backticks and fenced blocks",
     {{plain_header,
       "int whoever = nobody(\"by who\");  // the thief\n// Calls `nobody()` at once.\n"},
      {plain_page, "It says `whoever`.\n\n```sh\nwhoever\n```\n"}},
     {}},
    {"unplain_words",
     "other words that hold them, and engineers",
     {{plain_header, "// The theme hears an engineer who waits; the hisses of a shim.\n"}},
     {}},
    {"unplain_words", "in a place of no list", {{"docs/style.md", "Whoever. By who.\n"}}, {}},
};

}  // namespace tidy
