// The style law: the checks of tests/tidy/ over this tree, and over small texts with planted
// faults.
#include "tidy/atomics.hpp"
#include "tidy/conformance.hpp"
#include "tidy/house.hpp"
#include "tidy/members.hpp"
#include "tidy/name_examples.hpp"
#include "tidy/operation_examples.hpp"
#include "tidy/operations.hpp"
#include "tidy/prose.hpp"
#include "tidy/prose_examples.hpp"
#include "tidy/quotes.hpp"
#include "tidy/text.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

namespace {

using namespace tidy;

struct check {
    const char* name;
    void (*run)(const tree&, findings&);
};

std::ostream& operator<<(std::ostream& out, const check& c) {
    return out << c.name;
}

constexpr check checks[] = {
    {"include_direction", include_direction},
    {"documented_rooms", documented_rooms},
    {"banned_includes", banned_includes},
    {"unknown_places", unknown_places},
    {"umbrellas_only_include", umbrellas_only_include},
    {"dead_headers", dead_headers},
    {"whole_umbrella", whole_umbrella},
    {"untested_headers", untested_headers},
    {"atomics_outside_the_seam", atomics_outside_the_seam},
    {"implicit_orders", implicit_orders},
    {"operators_on_atomics", operators_on_atomics},
    {"unpaired_edges", unpaired_edges},
    {"misplaced_edges", misplaced_edges},
    {"unnamed_edges", unnamed_edges},
    {"unmodelled_edges", unmodelled_edges},
    {"undocumented_edges", undocumented_edges},
    {"banned_words", banned_words},
    {"macros", macros},
    {"reserved_names", reserved_names},
    {"banned_habits", banned_habits},
    {"implicit_captures", implicit_captures},
    {"long_lines", long_lines},
    {"long_headers", long_headers},
    {"long_functions", long_functions},
    {"header_shape", header_shape},
    {"unplain_words", unplain_words},
    {"quotes", quotes},
    {"bare_snippets", bare_snippets},
    {"dead_links", dead_links},
    {"proven_conformance", proven_conformance},
    {"undocumented_names", undocumented_names},
    {"undocumented_members", undocumented_members},
    {"unstopped_operations", unstopped_operations},
    {"unlisted_names", unlisted_names},
};

findings run(std::string_view name, const tree& files) {
    findings out;
    for (const check& c : checks) {
        if (c.name == name) c.run(files, out);
    }
    return out;
}

std::string describe(const findings& all) {
    std::string text;
    for (const finding& f : all)
        text += f.path + ":" + std::to_string(f.line) + ": " + f.message + "\n";
    return text;
}

// What the law covers: our C++, the build files, the scripts, and the documents.
bool is_covered(const std::string& path) {
    for (const char* const suffix : {".hpp", ".cpp", ".md", ".cmake", ".sh", "CMakeLists.txt"}) {
        if (path.ends_with(suffix)) return true;
    }
    return path == "run" || path == "test" || path == "bench" || path == ".ci/run";
}

const tree& project() {
    namespace fs = std::filesystem;
    static const tree files = [] {
        const fs::path root = COPPICE_SOURCE_DIR;
        std::vector<fs::path> paths;
        for (const char* const folder : {"include", "src", "tests", "benchmarks", "examples",
                                         "apps", "cmake", "docs", "scripts", ".ci"}) {
            if (!fs::exists(root / folder)) continue;
            for (const auto& entry : fs::recursive_directory_iterator(root / folder))
                paths.push_back(entry.path());
        }
        for (const auto& entry : fs::directory_iterator(root)) paths.push_back(entry.path());
        std::sort(paths.begin(), paths.end());
        tree all;
        for (const fs::path& path : paths) {
            std::string name = fs::relative(path, root).generic_string();
            if (!fs::is_regular_file(path)) continue;
            if (name.starts_with("docs/images/")) all.emplace_back(name, "");  // links lead there
            if (!is_covered(name)) continue;
            std::ifstream in(path, std::ios::binary);
            all.emplace_back(std::move(name), std::string(std::istreambuf_iterator<char>(in), {}));
        }
        return all;
    }();
    return files;
}

// ---- The tree keeps the law -------------------------------------------------------------------

class the_tree : public testing::TestWithParam<check> {};

TEST_P(the_tree, keeps) {
    ASSERT_GT(project().size(), 20u) << "the tree was not found at " << COPPICE_SOURCE_DIR;
    const findings out = run(GetParam().name, project());
    EXPECT_TRUE(out.empty()) << out.size() << " finding(s)\n" << describe(out);
}
INSTANTIATE_TEST_SUITE_P(law, the_tree, testing::ValuesIn(checks),
                         [](const auto& each) { return std::string(each.param.name); });

// What docs/architecture.md shows is there: its table is the law's, and each room has a header.
TEST(rooms, are_all_on_disk) {
    for (const auto& [room, others] : rooms()) {
        EXPECT_TRUE(std::any_of(project().begin(), project().end(), [&](const source_file& f) {
            return f.is_header() && room_of(f) == room;
        })) << room;
    }
}

// An exception whose reason is gone must go too.
TEST(exceptions, are_all_still_needed) {
    const auto file = [](std::string_view path) {
        return std::find_if(project().begin(), project().end(),
                            [&](const source_file& f) { return f.path == path; });
    };
    for (const coverage& c : covered_elsewhere) {
        EXPECT_NE(file(c.header), project().end()) << c.header;
        EXPECT_NE(file(c.test), project().end()) << c.test;
    }
    for (const long_text& l : allowed_lengths) EXPECT_NE(file(l.path), project().end()) << l.path;
    for (const unmodelled& u : edges_without_model) {
        bool found = false;
        for (const source_file& f : project()) {
            for (const edge_mention& edge : edges(f)) found = found || edge.name == u.name;
        }
        EXPECT_TRUE(found) << u.name << " names no edge any more";
    }
}

// ---- Each check finds what it is for ----------------------------------------------------------

constexpr const char* source = "src/pool/x.cpp";

std::string lines_of(std::size_t count, const std::string& line) {
    std::string text;
    for (std::size_t i = 0; i != count; ++i) text += line + "\n";
    return text;
}

std::string documented_table() {
    std::string table;
    for (const auto& [room, others] : rooms()) {
        table += room + " <-";
        for (const std::string& other : others) table += " " + other;
        table += others.empty() ? " nothing\n" : "\n";
    }
    return table;
}

const std::vector<example> house_examples = {
    {"include_direction", "down the table", {{library, "#include <coppice/exec/then.hpp>\n"}}, {}},
    {"include_direction", "its own room", {{library, "#include <coppice/pool/y.hpp>\n"}}, {}},
    {"include_direction", "up", {{library, "\n#include <coppice/io/ring.hpp>\n"}}, {2}},
    {"include_direction", "in a source", {{source, "#include <coppice/task/task.hpp>\n"}}, {1}},
    {"include_direction",
     "base is alone",
     {{"include/coppice/base/x.hpp", "#  include <coppice/stop/never.hpp>\n"}},
     {1}},
    {"include_direction", "an umbrella", {{library, "#include <coppice/execution.hpp>\n"}}, {1}},
    {"include_direction", "a room of no table", {{library, "#include <coppice/gui/x.hpp>\n"}}, {1}},
    {"include_direction", "quoted", {{library, "#include \"y.hpp\"\n"}}, {1}},
    {"include_direction", "past the folder", {{source, "#include \"../io/ring.hpp\"\n"}}, {1}},
    {"include_direction", "in a comment", {{library, "// #include <coppice/io/ring.hpp>\n"}}, {}},
    {"include_direction",
     "umbrellas and tests may",
     {{"include/coppice/pool.hpp", "#include <coppice/http/server.hpp>\n"},
      {"tests/base/x_test.cpp", "#include <coppice/http/server.hpp>\n"}},
     {}},

    {"banned_includes",
     "the parallel algorithms",
     {{"tests/x/y.cpp", "#include <execution>\n"}},
     {1}},
    {"banned_includes",
     "our own execution",
     {{"tests/x/y.cpp", "#include <coppice/execution.hpp>\n"}},
     {}},
    {"banned_includes",
     "costly in exec",
     {{"include/coppice/exec/x.hpp",
       "#include <chrono>\n#include <thread>\n#include <functional>\n"}},
     {1, 2, 3}},
    {"banned_includes",
     "costly in task",
     {{"include/coppice/task/x.hpp", "#include <functional>\n"}},
     {1}},
    {"documented_rooms", "the law's", {{"docs/architecture.md", documented_table()}}, {}},
    {"documented_rooms",
     "one room too many",
     {{"docs/architecture.md", "signal <- base trace\n" + documented_table()}},
     {1}},
    {"documented_rooms",
     "an unknown room",
     {{"docs/architecture.md", "gui <- base\n" + documented_table()}},
     {1}},
    {"documented_rooms",
     "all missing but base",
     {{"docs/architecture.md", "base <- nothing\n"}},
     std::vector<std::size_t>(10, 1)},

    {"banned_includes", "costly elsewhere", {{library, "#include <chrono>\n"}}, {}},

    {"unknown_places",
     "a room, its source, its test, and a model",
     {{library, ""}, {source, ""}, {"tests/pool/x_test.cpp", ""}, {"tests/model/x_model.cpp", ""}},
     {}},
    {"unknown_places", "no room", {{"include/coppice/gui/x.hpp", ""}}, {1}},
    {"unknown_places", "no room, in src", {{"src/gui/x.cpp", ""}}, {1}},
    {"unknown_places", "no room, in tests", {{"tests/gui/x_test.cpp", ""}}, {1}},
    {"unknown_places",
     "tests of a program",
     {{"apps/serve/main.cpp", ""}, {"tests/serve/options_test.cpp", ""}},
     {}},
    {"unknown_places",
     "a program's test that no glob finds",
     {{"apps/serve/main.cpp", ""}, {"tests/serve/options.cpp", ""}},
     {1}},
    {"unknown_places", "a detail folder", {{"include/coppice/pool/detail/x.hpp", ""}}, {1}},
    {"unknown_places", "a source that no glob finds", {{"src/io/linux/x.cpp", ""}}, {1}},
    {"unknown_places", "a test that no glob finds", {{"tests/pool/x.cpp", ""}}, {1}},
    {"unknown_places", "a model that no glob finds", {{"tests/model/x_test.cpp", ""}}, {1}},
    {"unknown_places", "a fuzzer that no glob finds", {{"tests/fuzz/x.cpp", ""}}, {1}},
    {"unknown_places", "an example that no glob finds", {{"examples/hello.cpp", ""}}, {1}},
    {"unknown_places", "an example", {{"examples/01_hello.cpp", ""}}, {}},

    {"umbrellas_only_include",
     "it does",
     {{"include/coppice/pool.hpp", "// All.\n#pragma once\n#include <coppice/pool/x.hpp>\n"}},
     {}},
    {"umbrellas_only_include",
     "it declares",
     {{"include/coppice/pool.hpp", "// All.\n#pragma once\nnamespace coppice {}\n"}},
     {3}},

    {"dead_headers",
     "included nowhere but in itself",
     {{library, "#include <coppice/pool/x.hpp>\n"}, {source, "// <coppice/pool/x.hpp>\n"}},
     {1}},
    {"dead_headers", "included", {{library, ""}, {source, "#include <coppice/pool/x.hpp>\n"}}, {}},
    {"dead_headers",
     "another of the same name",
     {{library, ""}, {source, "#include <coppice/task/x.hpp>\n"}},
     {1}},
    {"dead_headers",
     "of the tests, relative",
     {{"tests/support/a.hpp", ""},
      {"tests/pool/x_test.cpp", "#include \"a.hpp\"\n"},
      {"benchmarks/h.hpp", ""},
      {"benchmarks/b/b.cpp", "#include \"../h.hpp\"\n"}},
     {}},
    {"dead_headers", "of the tests", {{"tests/support/a.hpp", ""}}, {1}},

    {"dead_headers",
     "included by its test alone",
     {{library, ""}, {"tests/pool/x_test.cpp", "#include <coppice/pool/x.hpp>\n"}},
     {1}},

    {"whole_umbrella",
     "complete",
     {{"include/coppice/coppice.hpp", "#include <coppice/pool.hpp>\n"},
      {"include/coppice/pool.hpp", ""},
      {library, ""}},
     {}},
    {"whole_umbrella",
     "one is left out",
     {{"include/coppice/coppice.hpp", "#include <coppice/pool.hpp>\n"},
      {"include/coppice/pool.hpp", ""},
      {"include/coppice/io.hpp", ""}},
     {1}},

    {"untested_headers", "nothing", {{library, ""}, {"tests/pool/y_test.cpp", ""}}, {1}},
    {"untested_headers", "by name", {{library, ""}, {"tests/pool/x_test.cpp", ""}}, {}},
    {"untested_headers", "by a model", {{library, ""}, {"tests/model/x_model.cpp", ""}}, {}},
    {"untested_headers",
     "by its room",
     {{library, ""}, {"tests/pool/y_test.cpp", "#include <coppice/pool/x.hpp>\n"}},
     {}},
    {"untested_headers",
     "by another room",
     {{library, ""}, {"tests/io/y_test.cpp", "#include <coppice/pool/x.hpp>\n"}},
     {1}},
    {"untested_headers",
     "a helper of a tested header",
     {{library, "#include <coppice/pool/y.hpp>\n"},
      {"include/coppice/pool/y.hpp", ""},
      {"include/coppice/pool.hpp", "#include <coppice/pool/x.hpp>\n"},
      {"tests/pool/x_test.cpp", ""}},
     {}},
    {"untested_headers",
     "a helper of a source whose header is tested",
     {{source, "#include <coppice/pool/y.hpp>\n"},
      {library, ""},
      {"include/coppice/pool/y.hpp", ""},
      {"include/coppice/pool.hpp", "#include <coppice/pool/x.hpp>\n"},
      {"tests/pool/x_test.cpp", ""}},
     {}},
    {"untested_headers",
     "a helper of an untested header",
     {{library, "#include <coppice/pool/y.hpp>\n"},
      {"include/coppice/pool/y.hpp", ""},
      {"include/coppice/pool.hpp", "#include <coppice/pool/x.hpp>\n"}},
     {1, 1}},
    {"untested_headers",
     "public, although a tested header includes it",
     {{library, "#include <coppice/pool/y.hpp>\n"},
      {"include/coppice/pool/y.hpp", ""},
      {"include/coppice/pool.hpp",
       "#include <coppice/pool/x.hpp>\n#include <coppice/pool/y.hpp>\n"},
      {"tests/pool/x_test.cpp", ""}},
     {1}},
    {"untested_headers",
     "of a room without an umbrella",
     {{library, "#include <coppice/pool/y.hpp>\n"},
      {"include/coppice/pool/y.hpp", ""},
      {"tests/pool/x_test.cpp", ""}},
     {1}},
    {"untested_headers",
     "listed",
     {{"include/coppice/base/futex.hpp", ""}, {"tests/model/seam_model.cpp", ""}},
     {}},
    {"untested_headers",
     "listed, but its test is gone",
     {{"include/coppice/base/futex.hpp", ""}},
     {1}},
};

const std::vector<example> atomics_examples = {
    {"atomics_outside_the_seam",
     "in the seam",
     {{"include/coppice/base/atomic.hpp", "#include <atomic>\nstd::atomic<int> x;\n"}},
     {}},
    {"atomics_outside_the_seam",
     "in a room",
     {{library,
       "#include <atomic>\nstd::atomic<int> x;\nstd::atomic_flag y;\n"
       "auto o = std::memory_order_relaxed;\nint z = __atomic_load_n(&w, 0);\n"
       "__sync_synchronize();\n"}},
     {1, 2, 3, 4, 5, 6}},
    {"atomics_outside_the_seam",
     "in a test",
     {{"tests/pool/x_test.cpp", "std :: atomic_ref r(x);\n"}},
     {1}},
    {"atomics_outside_the_seam",
     "spoken about",
     {{library, "// like std::atomic<T>\nauto s = \"std::atomic\";\n/* std::\n  atomic */\n"}},
     {}},
    {"atomics_outside_the_seam",
     "in a user's program",
     {{"examples/01_x.cpp", "std::atomic<int> x;\n"}},
     {}},

    {"implicit_orders",
     "all spelled",
     {{library,
       "a.load(relaxed); a->store(1, release);\na.exchange(f(1, 2), coppice::acq_rel);\n"
       "a.fetch_add(1,\n   seq_cst);\na.compare_exchange_weak(e, {1, 2}, acquire,\n"
       "   relaxed);\na.load(order);\na.store(static_cast<pair<int, int>>(x), relaxed);\n"
       "x = std::exchange(y, 1);\n"}},
     {}},
    {"implicit_orders", "load", {{library, "\nx = a.load();\n"}}, {2}},
    {"implicit_orders", "store across lines", {{library, "a->store(\n  f(relaxed));\n"}}, {1}},
    {"implicit_orders", "exchange", {{library, "a.exchange(std::move(b));\n"}}, {1}},
    {"implicit_orders", "fetch", {{library, "a.fetch_or(1u << (2, 3));\n"}}, {1}},
    {"implicit_orders",
     "one of two",
     {{library, "a.compare_exchange_strong(e, 1, acq_rel);\n"}},
     {1}},
    {"implicit_orders", "an order inside a value", {{library, "a.store(b.load(relaxed));\n"}}, {1}},
    {"implicit_orders", "in a test", {{"tests/pool/x_test.cpp", "a.load();\n"}}, {1}},

    {"operators_on_atomics",
     "assignment and increment",
     {{library, "atomic<int> a_{0};\nvoid f() {\n a_ = 1;\n ++a_;\n a_ |= 2;\n a_--;\n}\n"}},
     {3, 4, 5, 6}},
    {"operators_on_atomics",
     "declared in the header, used in the source",
     {{library, "atomic<map<int, int>*> a_;\n"}, {source, "void f() { a_ = nullptr; }\n"}},
     {1}},
    {"operators_on_atomics",
     "operations, and another's field",
     {{library,
       "atomic<int> a_ = 0;\nint b_;\nvoid f() { b_ = a_.load(relaxed); a_.store(1, relaxed); "
       "}\n"}},
     {}},

    {"unpaired_edges", "shared with the kernel", {{source, "// edge kernel.x (release)\n"}}, {}},
    {"unpaired_edges",
     "two halves in two files",
     {{library, "x.store(1, release);  // edge pool.x (release): written\n"},
      {source, "// edge pool.x (acquire): seen\n"}},
     {}},
    {"unpaired_edges", "no acquire", {{library, "\n// edge pool.x (release): written\n"}}, {2}},
    {"unpaired_edges",
     "no release, twice",
     {{library, "// edge pool.x (acquire): seen\n// edge pool.x (acquire): seen\n"}},
     {1}},
    {"unpaired_edges",
     "another name",
     {{library, "// edge pool.x (release): a\n// edge pool.y (acquire): b\n"}},
     {1, 2}},
    {"unpaired_edges", "acq_rel with itself", {{library, "// edge pool.x (acq_rel): both\n"}}, {}},
    {"unpaired_edges", "a lone seq_cst", {{library, "// edge pool.x (seq_cst): either or\n"}}, {1}},
    {"unpaired_edges",
     "two seq_cst",
     {{library, "// edge pool.x (seq_cst): A\n// edge pool.x (seq_cst): B\n"}},
     {}},
    {"unpaired_edges",
     "no half, no space, no order",
     {{library,
       "// edge pool.x (relaxed): a\n// edge pool.x(release): b\n// edge pool.x (fast)\n"}},
     {1, 2, 3}},
    {"unpaired_edges",
     "prose",
     {{library, "// The edge (release) of it; edge pool.x orders; a hedge a.b (x).\n"}},
     {}},

    {"unpaired_edges",
     "light and heavy",
     {{source, "// edge a.x (light): l\n// edge a.x (heavy): h\n"}},
     {}},
    {"unpaired_edges",
     "two light ones",
     {{source, "// edge a.x (light): l\n// edge a.x (light): l\n"}},
     {1}},

    {"misplaced_edges",
     "on the line, and alone above",
     {{library,
       "x.store(1, release);  // edge pool.x (release): a\n// edge pool.x (acquire): b\n"
       "y = x.load(acquire);\n// edge pool.x (acquire): c\nfence(seq_cst);\n"}},
     {}},
    {"misplaced_edges",
     "two lines above",
     {{library, "// edge pool.x (release): a\n// and more\nx.store(1, release);\n"}},
     {1}},
    {"misplaced_edges",
     "another order",
     {{library, "x.store(1, relaxed);  // edge pool.x (release)\n"}},
     {1}},
    {"misplaced_edges",
     "the other half",
     {{library, "x.load(acquire);  // edge pool.x (release)\n"}},
     {1}},
    {"misplaced_edges", "no operation", {{library, "f();  // edge pool.x (release): a\n"}}, {1}},

    {"misplaced_edges",
     "asymmetric fences",
     {{source, "light_fence();  // edge a.x (light): l\n// edge a.x (heavy): h\nheavy_fence();\n"}},
     {}},
    {"misplaced_edges",
     "the other fence",
     {{source, "light_fence();  // edge a.x (heavy): h\n"}},
     {1}},
    {"misplaced_edges",
     "in what is called",
     {{source, "// edge a.x (acquire): seen; the load is in wait\ns.wait(x);\n"}},
     {}},
    {"misplaced_edges",
     "in what is not called",
     {{source, "// edge a.x (acquire): seen; the load is in wait\ns.look(x);\n"}},
     {1}},

    {"unnamed_edges", "relaxed needs none", {{library, "x.load(relaxed);\n"}}, {}},
    {"unnamed_edges",
     "named above",
     {{library, "// edge pool.x (acquire): a\nif (x.load(acquire)) {\n}\n"}},
     {}},
    {"unnamed_edges",
     "each order",
     {{library, "x.load(acquire);\nx.store(1, release);\nfence(seq_cst);\n"}},
     {1, 2, 3}},
    {"unnamed_edges",
     "a failure order",
     {{library, "x.compare_exchange_weak(e, 1, relaxed, acquire);\n"}},
     {1}},
    {"unnamed_edges", "in a test", {{"tests/pool/x_test.cpp", "x.load(acquire);\n"}}, {}},

    {"unnamed_edges", "an asymmetric fence", {{source, "light_fence();\n"}}, {1}},
    {"unnamed_edges",
     "where they are made",
     {{"src/base/asymmetric.cpp", "fence(seq_cst);\n"}},
     {}},

    {"unmodelled_edges", "shared with the kernel", {{source, "// edge kernel.x (release)\n"}}, {}},
    {"unmodelled_edges",
     "weakened by a model",
     {{library, "// edge pool.x (acq_rel): a\nif (planted(\"pool.drop\")) {\n}\n"},
      {"tests/model/x_model.cpp",
       "r.dies_weakened<t>(h, \"pool.x\"); r.dies_planted(\"pool.drop\");\n"}},
     {}},
    {"unmodelled_edges",
     "by none",
     {{library, "// edge pool.x (acq_rel): a\nif (planted(\"pool.drop\")) {\n}\n"},
      {"tests/model/x_model.cpp", "// pool.x, pool.drop\n"}},
     {1, 2}},
    {"unmodelled_edges",
     "excepted, with a reason",
     {{library, "// edge pool.call (acq_rel): a\n"}},
     {}},

    {"undocumented_edges",
     "on the page",
     {{library, "// edge pool.x (acq_rel): a\n"},
      {"docs/memory-model.md", "| pool.w, pool.x | w | r | a | x |\n"}},
     {}},
    {"undocumented_edges",
     "on no page, once",
     {{library, "// edge pool.x (release): a\n// edge pool.x (acquire): a\n"},
      {"docs/memory-model.md", "| pool.xy | w | r | a | x |\n"}},
     {1}},
};

const std::string long_body = "void f() {\n" + lines_of(71, "    g();") + "}\n";
const std::string fair_body = "void f() {\n" + lines_of(70, "    g();") + "}\n";
const std::vector<example> text_examples = {
    {"banned_words",
     "in comments, code and scripts",
     {{library,
       "// TO"
       "DO: later\nint XX"
       "X;\n// FIX"
       "ME\n"},
      {"run",
       "# HA"
       "CK\n"}},
     {1, 2, 3, 1}},
    {"banned_words",
     "inside other words",
     {{library,
       "// TO"
       "DOS, HA"
       "CKER\nint XX"
       "XX;\n"}},
     {}},
    {"banned_words",
     "in prose about them",
     {{"docs/style.md",
       "TO"
       "DO is banned\n"}},
     {}},

    {"macros", "defined", {{library, "#define X 1\n  # define Y\n"}}, {1, 2}},
    {"macros",
     "the three",
     {{"include/coppice/base/check.hpp", "#define COPPICE_CHECK(c, m)\n"},
      {"include/coppice/base/cold_call.hpp", "#define COPPICE_COLD_CALL\n"},
      {"include/coppice/base/version.hpp", "#define COPPICE_VERSION 100\n"}},
     {}},
    {"macros",
     "tests and guards too",
     {{"tests/pool/x_test.cpp", "#ifndef X_HPP\n#define X_HPP\n#endif\n"}},
     {2}},
    {"macros",
     "code switched off",
     {{library, "#if 0\n#endif\n#if 1\n#endif\n#if  false\n#endif\n"}},
     {1, 5}},

    {"reserved_names",
     "ours",
     {{library, "int __x;\ntemplate <class _Tp> struct a;\nvoid __f();\n"}},
     {1, 2, 3}},
    {"reserved_names",
     "the compiler's",
     {{library,
       "__builtin_trap();\nf(__FILE__, __LINE__);\n__m256i v;\n_mm_pause();\n_Exit(1);\n"
       "_SC_PAGESIZE;\n#if __cpp_lib_foo\n#endif\n"}},
     {}},

    {"banned_habits", "using namespace in a header", {{library, "using namespace std;\n"}}, {1}},
    {"banned_habits",
     "using namespace internal in the library's own header",
     {{"src/pool/x.hpp", "using namespace internal;\n"}, {library, "using namespace internal;\n"}},
     {1}},
    {"banned_habits", "using namespace in a source", {{source, "using namespace std;\n"}}, {}},
    {"banned_habits",
     "the operator new that nobody replaces",
     {{library, "new (std::nothrow) int;\n"}, {"tests/x_test.cpp", "new (std::nothrow) int;\n"}},
     {1}},
    {"banned_habits", "endl", {{source, "out << std::endl;\n"}}, {1}},
    {"banned_habits",
     "sleeping in a test",
     {{"tests/pool/x_test.cpp",
       "std::this_thread::sleep_for(1ms);\nsleep_until(t);\nusleep(1);\n"}},
     {1, 2, 3}},
    {"banned_habits", "sleeping in an example", {{"examples/01_x.cpp", "sleep_for(1ms);\n"}}, {}},
    {"banned_habits",
     "swallowing",
     {{source, "try {\n} catch (...) {\n  // never mind\n}\ntry {\n} catch (const e& x) {}\n"}},
     {2}},
    {"banned_habits",
     "cold calls that throw",
     {{library, "COPPICE_COLD_CALL void f();\nCOPPICE_COLD_CALL void g() { h() noexcept; }\n"}},
     {1, 2}},
    {"banned_habits",
     "cold calls that do not",
     {{library, "COPPICE_COLD_CALL void f() noexcept;\nCOPPICE_COLD_CALL int g() noexcept {}\n"}},
     {}},
    {"banned_habits", "handling", {{source, "try {\n} catch (...) {\n  stop();\n}\n"}}, {}},
    {"banned_habits",
     "a disabled test",
     {{"tests/pool/x_test.cpp", "TEST(x, DISABLED_y) {}\nTEST(DISABLED_x, y) {}\n"}},
     {1, 2}},
    {"banned_habits",
     "skipping without a word",
     {{"tests/pool/x_test.cpp", "GTEST_SKIP();\n"}},
     {1}},
    {"banned_habits",
     "skipping with a reason",
     {{"tests/pool/x_test.cpp", "GTEST_SKIP() << \"no IPv6\";\n"}},
     {}},

    {"implicit_captures",
     "by reference, by value, and beside others",
     {{library, "f([&] { g(); });\nf([=, this] { g(); });\nf([&, x] {});\n"}},
     {1, 2, 3}},
    {"implicit_captures",
     "named, and in a source",
     {{library, "f([&x, y, this] {});\nf([] {});\n"}, {source, "f([&] {});\n"}},
     {}},

    {"long_lines", "101 columns", {{library, lines_of(1, std::string(101, 'x'))}}, {1}},
    {"long_lines",
     "100 columns, some of two bytes",
     {{library, "// " + lines_of(97, "\xC3\xA4").substr(0, 3)}},
     {}},
    {"long_lines", "100 columns", {{"scripts/x.sh", lines_of(2, std::string(100, 'x'))}}, {}},
    {"long_headers", "501 lines", {{library, lines_of(501, "//")}}, {501}},
    {"long_headers", "500 lines", {{library, lines_of(500, "//")}}, {}},
    {"long_headers", "a source", {{source, lines_of(501, "//")}}, {}},

    {"long_functions", "71 lines", {{source, long_body}}, {1}},
    {"long_functions", "70 lines", {{source, fair_body}}, {}},
    {"long_functions",
     "in classes in namespaces",
     {{library, "namespace a {\ntemplate <class T = int>\nstruct alignas(64) b : c<T> {\n" +
                    long_body + "};\n}\n"}},
     {4}},
    {"long_functions",
     "two short ones in a class",
     {{library, "struct b {\n" + fair_body + fair_body + "};\n"}},
     {}},
    {"long_functions",
     "a constructor with braced members",
     {{library, "b::b(int x) : a_{x},\n c_{1} {\n" + lines_of(71, "    g();") + "}\n"}},
     {2}},
    {"long_functions",
     "one that returns a struct",
     {{source, "struct a f(int x = 1) {\n" + lines_of(71, "    g();") + "}\n"}},
     {1}},
    {"long_functions",
     "a test",
     {{"tests/pool/x_test.cpp", "TEST(a, b) {\n" + lines_of(71, "g();") + "}\n"}},
     {1}},
    {"long_functions",
     "a lambda",
     {{source, "auto f = [](int) {\n" + lines_of(71, "g();") + "};\n"}},
     {1}},
    {"long_functions",
     "a table",
     {{source, "constexpr int t[] = {\n" + lines_of(99, "1,") + "};\n"}},
     {}},
    {"long_functions",
     "a concept and an enumeration",
     {{library, "template <class T> concept c = requires(T t) {\n" + lines_of(99, "t.x();") +
                    "};\nenum class e {\n" + lines_of(99, "a,") + "};\n"}},
     {}},
    {"long_functions",
     "braces that an #if splits",
     {{source, "#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n}\n"}},
     {2}},
    {"long_functions",
     "braces in literals",
     {{source, "const char* s = \"{{{\"; char c = '{'; auto r = R\"x({\n{)x\"; int n = 1'000;\n"}},
     {}},

    {"header_shape", "lawful", {{library, "// A deque; the pool uses it.\n#pragma once\n"}}, {}},
    {"header_shape", "no comment", {{library, "#pragma once\n#include <x>\n"}}, {1, 2}},
    {"header_shape",
     "two lines of comment",
     {{library, "// A deque;\n// the pool uses it.\n#pragma once\n"}},
     {1, 2}},
    {"header_shape", "empty", {{library, ""}}, {1, 2}},
    {"header_shape", "a source", {{source, ""}}, {}},
};

const text_at program = {"examples/01_x.cpp",
                         "int main() {\n    // [part]\n    f();\n      g();\n    // [/part]\n}\n"};
const std::string whole = "<!-- example: examples/01_x.cpp -->\n```cpp\n" + program.text + "```\n";
const std::string mark = "<!-- example: examples/01_x.cpp [part] -->\n";
const std::vector<example> document_examples = {
    {"quotes", "a whole file", {program, {"README.md", "Text.\n" + whole}}, {}},
    {"quotes", "a part", {program, {"README.md", mark + "```cpp\nf();\n  g();\n```\n"}}, {}},
    {"quotes",
     "a changed line",
     {program, {"README.md", mark + "```cpp\nf();\n  h();\n```\n"}},
     {4}},
    {"quotes", "a missing line", {program, {"README.md", mark + "```cpp\nf();\n```\n"}}, {4}},
    {"quotes",
     "a line too much",
     {program, {"README.md", mark + "```cpp\nf();\n  g();\nh();\n```\n"}},
     {5}},
    {"quotes", "an example that is gone", {{"README.md", whole}}, {1}},
    {"quotes",
     "a part that is gone",
     {program, {"README.md", "<!-- example: examples/01_x.cpp [other] -->\n```cpp\nf();\n```\n"}},
     {1}},
    {"quotes",
     "a mark without a block",
     {program, {"README.md", mark + "\n```cpp\nf();\n```\n"}},
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

const std::vector<example>& examples() {
    static const std::vector<example> all = [] {
        std::vector<example> gathered = house_examples;
        for (const auto* const more :
             {&atomics_examples, &text_examples, &document_examples, &name_examples,
              &member_examples, &operation_examples, &prose_examples})
            gathered.insert(gathered.end(), more->begin(), more->end());
        return gathered;
    }();
    return all;
}

TEST(checks, find_exactly_the_planted_faults) {
    for (const example& e : examples()) {
        tree files;
        for (const text_at& f : e.files) files.emplace_back(f.path, f.text);
        const findings out = run(e.check, files);
        std::vector<std::size_t> lines;
        for (const finding& f : out) lines.push_back(f.line);
        std::vector<std::size_t> expected = e.lines;
        std::sort(lines.begin(), lines.end());
        std::sort(expected.begin(), expected.end());
        EXPECT_EQ(lines, expected) << e << "\n" << describe(out);
    }
}

TEST(checks, each_have_a_planted_fault_and_a_lawful_twin) {
    for (const check& c : checks) {
        std::size_t faults = 0;
        std::size_t lawful = 0;
        for (const example& e : examples()) {
            if (std::string_view(e.check) == c.name) ++(e.lines.empty() ? lawful : faults);
        }
        EXPECT_GT(faults, 0u) << c.name;
        EXPECT_GT(lawful, 0u) << c.name;
    }
}

TEST(checks, say_file_line_and_message) {
    const tree files = {{library, "\n#include <coppice/io/ring.hpp>\n"}};
    EXPECT_EQ(describe(run("include_direction", files)),
              "include/coppice/pool/x.hpp:2: room pool may not include room io\n");
}

}  // namespace
