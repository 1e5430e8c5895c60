// Planted faults for the law of operations.hpp, and their lawful twins.
#pragma once

#include "example.hpp"

namespace tidy {

inline const std::string two_operations =
    "namespace a {\nclass b {\npublic:\n    template <class Token = use_await_t>\n"
    "    auto wait(Token&& token = {}) {\n        return 1;\n    }\nprivate:\n"
    "    task<int> hidden();\n};\ntask<> rest(int n);\n}\n";
inline const std::string one_sender =
    "class c {\nclass s {\n    using sender_concept = t;\n};\n"
    "public:\n    s begin() const;\n    void end();\n};\n";

inline const std::vector<example> operation_examples = {
    {"unstopped_operations",
     "all in the test",
     {{library, two_operations},
      {"tests/compose/every_operation_x_test.cpp",
       "check(\"b::wait of pieces\", 1);\n{\"rest\", \"no need\"},\n"}},
     {}},
    {"unstopped_operations",
     "two in none",
     {{library, two_operations}, {"tests/compose/every_operation_x_test.cpp", "// \n"}},
     {5, 11}},
    {"unstopped_operations",
     "in another test",
     {{library, two_operations}, {"tests/io/x_test.cpp", "\"b::wait\" \"rest\"\n"}},
     {5, 11}},
    {"unstopped_operations", "gives a sender", {{library, one_sender}}, {6}},
    {"unstopped_operations",
     "an algorithm, a query and a customization point",
     {{"include/coppice/exec/x.hpp",
       "inline constexpr all_t all{};\ninline constexpr get_x_t get_x{};\n"
       "inline constexpr connect_t connect{};\n"}},
     {1}},
    {"unstopped_operations",
     "a name whose function is gone",
     {{"tests/compose/every_operation.hpp", "{\"b::wait\", \"it is gone\"},\n"}},
     {1}},
    {"unstopped_operations",
     "tokens, sources and definitions",
     {{"include/coppice/token/x.hpp", two_operations},
      {"src/io/x.cpp", two_operations},
      {library, "template <class T>\ntask<int> x<T>::f(int n) {\n    return 1;\n}\n"}},
     {}},
};

}  // namespace tidy
