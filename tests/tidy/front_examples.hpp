// Planted faults for the law of front.hpp, and their lawful twins.
#pragma once

#include "example.hpp"

namespace tidy {

inline const std::vector<example> front_examples = {
    {"fronts_in_umbrellas",
     "a front in its umbrella, a back in none",
     {{library, ""},
      {"include/coppice/pool.hpp", "#include <coppice/pool/x.hpp>\n"},
      {"include/coppice/pool/internal/y.hpp", ""}},
     {}},
    {"fronts_in_umbrellas", "a front in none", {{library, ""}}, {1}},
    {"fronts_in_umbrellas",
     "a back in an umbrella",
     {{"include/coppice/pool.hpp", "\n#include <coppice/pool/internal/y.hpp>\n"}},
     {2}},

    {"headers_in_readmes",
     "a front and backs that their room names, by themselves or by their last word",
     {{library, ""},
      {"include/coppice/pool/internal/y.hpp", ""},
      {"include/coppice/pool/internal/z.hpp", ""},
      {"include/coppice/pool/internal/big_y.hpp", ""},
      {"include/coppice/pool/README.md",
       lines_of(74, "") + "[x](x.hpp), [y](internal/y.hpp), `z.hpp`, `*_y.hpp`\n"}},
     {}},
    {"headers_in_readmes",
     "a back that its room does not name, though it names a longer one",
     {{"include/coppice/pool/internal/y.hpp", ""},
      {"include/coppice/pool/README.md", "[b](internal/big_y.hpp)\n"}},
     {1}},
    {"headers_in_readmes",
     "a front that its room links to",
     {{library, ""}, {"include/coppice/pool/README.md", "[x](x.hpp)\n"}},
     {}},
    {"headers_in_readmes",
     "a front that its room does not name, and a README of two pages",
     {{library, ""}, {"include/coppice/pool/README.md", lines_of(76, "")}},
     {1, 76}},

    {"foreign_backs",
     "its own, that of base, and a seam",
     {{library,
       "#include <coppice/pool/internal/y.hpp>\n#include <coppice/base/internal/z.hpp>\n"
       "#include <coppice/exec/internal/invoke.hpp>\n"},
      {"tests/io/x_test.cpp", "#include <coppice/pool/internal/y.hpp>\n"}},
     {}},
    {"foreign_backs",
     "another room's",
     {{"src/io/x.cpp", "#include <coppice/task/internal/y.hpp>\n"}},
     {1}},
    {"foreign_backs",
     "a program has only fronts",
     {{"apps/a/x.cpp", "#include <coppice/base/internal/z.hpp>\n"},
      {"examples/01_x.cpp", "#include <coppice/base/lifetime.hpp>\n"}},
     {1}},

    {"shown_backs",
     "names in internal, in a front, and declared only",
     {{"include/coppice/pool/internal/y.hpp",
       "namespace coppice {\nclass a;\nnamespace internal {\nclass b {};\n}\n}\n"
       "namespace coppice::internal {\nint c();\n}\n"
       "template <>\nstruct std::d<int> {};\nnamespace std {\nstruct e {};\n}\n"},
      {library, "namespace coppice {\nclass a {};\n}\n"}},
     {}},
    {"shown_backs",
     "names that a using-directive brings",
     {{"include/coppice/pool/internal/y.hpp",
       "namespace coppice {\nclass a {};\nnamespace internal {\n}\nint b();\n}\n"}},
     {2, 5}},
};

}  // namespace tidy
