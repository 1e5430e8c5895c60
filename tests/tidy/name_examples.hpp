// Planted faults for the checks of public names and members, and their lawful twins.
#pragma once

#include "example.hpp"

namespace tidy {

inline const text_at user = {"examples/01_x.cpp", "coppice::used<int>(1);\n"};
inline const std::vector<example> name_examples = {
    {"undocumented_names", "a function", {user, {library, "\nint used(int);\n"}}, {2}},
    {"undocumented_names",
     "documented above, above its head, behind, and in a group",
     {user,
      {library, "// Does.\nint used(int);\n"},
      {"include/coppice/io/x.hpp",
       "// Is.\ntemplate <class T>\n    requires a<T> && (b)\nclass used : c<T> {\n};\n"},
      {"README.md", "`other` and `f(third, fourth{})`\n"},
      {"include/coppice/io/y.hpp",
       "using other = int;  // is\n// Both.\nint third();\nint fourth() { return {}; }\n"}},
     {}},
    {"undocumented_names",
     "a type, an alias, a concept, a template, an enumeration",
     {{"README.md", "`a1 a2 a3 a4 a5`\n"},
      {library,
       "namespace coppice {\nstruct a1 : b {\n};\nusing a2 = int;\ntemplate <class T>\n"
       "concept a3 = true;\ntemplate <class T>\nauto a4(T t) -> int {\n    return t;\n}\n"
       "enum class a5 { x };\n}\n"}},
     {2, 4, 6, 8, 11}},
    {"undocumented_names",
     "an object of a documented type, and of another",
     {{"README.md", "`then, let`\n"},
      {library,
       "// Maps.\nstruct then_t {};\n\ninline constexpr then_t then{};\n\nstruct let_t {};\n\n"
       "inline constexpr let_t let{};\n"}},
     {8}},
    {"undocumented_names",
     "after a blank line, and after another's comment",
     {user, {library, "// Far.\n\nint used();  \n"}},
     {3}},
    {"undocumented_names",
     "a header's namesake",
     {user, {"include/coppice/pool/used.hpp", "// used: a tool.\n\nclass used {\n};\n"}},
     {}},
    {"undocumented_names",
     "what no user meets, members, and guides",
     {user,
      {library,
       "inline namespace used {\nint helper();\n}\n\n// A class.\nclass x {\n    int "
       "used();\n};\n\nint x::used() {}\n\n"
       "used(int) -> used<int>;\n"}},
     {}},
    {"undocumented_names",
     "declared here, documented where it is defined",
     {user, {library, "class used;\n\n// Is.\nclass used {\n};\n"}},
     {}},

    {"unlisted_names",
     "a class, a function and an object that are not listed",
     {{"docs/names.md", "| `x.hpp` | `good` |\n"},
      {library,
       "namespace coppice {\nclass good {};\nclass clock {};\nvoid fence();\n"
       "inline constexpr int acquire = 1;\n}\n"}},
     {3, 4, 5}},
    {"unlisted_names",
     "what is internal",
     {{"docs/names.md", "| `x.hpp` | `good` |\n"},
      {library,
       "namespace coppice {\nnamespace internal {\nclass clock {};\n}\nclass good {};\n}\n"
       "namespace coppice::internal {\nvoid fence();\n}\n"}},
     {}},
    {"unlisted_names",
     "after an inner namespace, in an inline one, and by a using-declaration",
     {{"docs/names.md", "| `x.hpp` | `good` |\n"},
      {library,
       "namespace coppice {\nnamespace internal {\n}\nclass clock {};\n"
       "inline namespace v1 {\nclass result {};\n}\nusing io::atomic;\nclass good {};\n}\n"}},
     {4, 6, 8}},
    {"unlisted_names",
     "a listed name that no header declares, and an unlisted namespace",
     {{"docs/names.md", "| header | names |\n| `x.hpp` | `gone`, the namespace `io` |\n"},
      {library,
       "namespace coppice::io {\nclass a {};\n}\nnamespace coppice::gui {\nclass b {};\n}\n"}},
     {2, 5}},
};

// Makes a class that users meet, in a header that an umbrella includes.
inline std::vector<text_at> met_class(const std::string& body) {
    return {user,
            {"include/coppice/pool.hpp", "#include <coppice/pool/x.hpp>\n"},
            {library, "// Is.\nclass used : base<int> {\n" + body + "};\n"}};
}
inline const std::vector<example> member_examples = {
    {"undocumented_members",
     "a function, a template, a field, a constructor, an operator",
     met_class(
         "public:\n    int f();\n\n    template <class T>\n        requires a<T> || (b)\n"
         "    auto g(T t) const -> T {\n        return t;\n    }\n\n    std::vector<int> h{1};"
         "\n\n    explicit used(int x) : base<int>{x}, i_{} {}\n\n    int operator()(int);\n"
         "    static constexpr int a[2] = {1, 2};\n"),
     {4, 6, 12, 14, 16, 17}},
    {"undocumented_members",
     "documented above, behind, within its head, and in a run",
     met_class("public:\n    // Does.\n    int f();\n    int g() {\n        return 1;\n    }\n"
               "    int h;\n\n    int i = 1;  // is\n\n    int j(int x,  // so many\n          int "
               "y);\n"),
     {}},
    {"undocumented_members",
     "behind what ends a run: a blank line, a longer body, a label",
     met_class("public:\n    // Does.\n    int f();\n\n    int g();\n    // Does.\n    int h() {\n"
               "        a();\n        return 1;\n    }\n    int i();\n    // Does.\n    int j();\n"
               "public:\n    int k();\n"),
     {7, 13, 17}},
    {"undocumented_members",
     "an overload of what is documented",
     met_class("public:\n    // Does.\n    int f();\n\n    int f(int);\n\n    int g();\n"),
     {9}},
    {"undocumented_members",
     "what is private, of a type, or needs no words",
     met_class(
         "    int f();\npublic:\n    using type = int;\n    class inner {\n        int x;\n    };\n"
         "    used() = default;\n    used(used&& other) noexcept : x_(other.x_) {}\n"
         "    used& operator=(used other) noexcept;\n    used(int) = delete;\n    ~used();\n"
         "    bool operator==(const used&) const;\n    int go() override;\n"
         "    friend int other(used);\n    env get_env() const noexcept;\n"
         "protected:\n    int g();\nprivate:\n    int x_;\n"),
     {}},
    {"undocumented_members",
     "a constructor that the class's comment speaks of, and one that it does not",
     {user,
      {"include/coppice/pool.hpp",
       "#include <coppice/pool/x.hpp>\n#include <coppice/pool/y.hpp>\n"},
      {library,
       "// Is. Errors of the constructor: none.\nclass used {\npublic:\n    used(int);\n};\n"},
      {"include/coppice/pool/y.hpp",
       "// Is a constructor's.\n\n// Is.\nclass used {\npublic:\n    used(int);\n};\n"}},
     {6}},
    {"undocumented_members",
     "a struct's, and those of a class that no user meets or no umbrella includes",
     {user,
      {"include/coppice/pool.hpp", "#include <coppice/pool/x.hpp>\n"},
      {library, "struct used {\n    int f;\n};\nclass helper {\npublic:\n    int f();\n};\n"},
      {"include/coppice/pool/y.hpp", "struct used {\n    int f;\n};\n"}},
     {2}},
    {"undocumented_members",
     "a public base's, wherever it is, and not a private one's",
     {user,
      {"include/coppice/pool.hpp", "#include <coppice/pool/x.hpp>\n"},
      {library, "class used : base<int>, public other<used>, helper {};\n"},
      {"include/coppice/pool/y.hpp",
       "template <class T>\nclass other : public below {\npublic:\n    int f();\n};\n"
       "struct below {\n    int g();\n};\nstruct helper {\n    int h();\n};\n"}},
     {4, 7}},
};

}  // namespace tidy
