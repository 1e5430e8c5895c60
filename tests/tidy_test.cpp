// The style law: the checks of tests/tidy/ over this tree, and over small texts with planted
// faults.
#include "tidy/atomics.hpp"
#include "tidy/atomics_examples.hpp"
#include "tidy/conformance.hpp"
#include "tidy/document_examples.hpp"
#include "tidy/front.hpp"
#include "tidy/front_examples.hpp"
#include "tidy/hops.hpp"
#include "tidy/hops_examples.hpp"
#include "tidy/house.hpp"
#include "tidy/house_examples.hpp"
#include "tidy/members.hpp"
#include "tidy/name_examples.hpp"
#include "tidy/operation_examples.hpp"
#include "tidy/operations.hpp"
#include "tidy/prose.hpp"
#include "tidy/prose_examples.hpp"
#include "tidy/quotes.hpp"
#include "tidy/text.hpp"
#include "tidy/text_examples.hpp"

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
    {"fronts_in_umbrellas", fronts_in_umbrellas},
    {"headers_in_readmes", headers_in_readmes},
    {"foreign_backs", foreign_backs},
    {"shown_backs", shown_backs},
    {"dead_headers", dead_headers},
    {"whole_umbrella", whole_umbrella},
    {"untested_headers", untested_headers},
    {"threads_of_single_threaded", threads_of_single_threaded},
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
    {"piped_grep", piped_grep},
    {"long_lines", long_lines},
    {"long_headers", long_headers},
    {"long_tests", long_tests},
    {"long_functions", long_functions},
    {"header_shape", header_shape},
    {"unplain_words", unplain_words},
    {"quotes", quotes},
    {"bare_snippets", bare_snippets},
    {"dead_links", dead_links},
    {"dead_hops", dead_hops},
    {"missing_files", missing_files},
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

// Returns true if the law covers the path: our C++, build files, scripts, and documents.
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

// Each room that docs/architecture.md shows is on disk: it has a header.
TEST(rooms, are_all_on_disk) {
    for (const auto& [room, others] : rooms()) {
        EXPECT_TRUE(std::any_of(project().begin(), project().end(), [&](const source_file& f) {
            return f.is_header() && room_of(f) == room;
        })) << room;
    }
}

// An exception without a reason must go.
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
        EXPECT_TRUE(found) << u.name << " no longer names an edge";
    }
}

// ---- Each check finds what it is for ----------------------------------------------------------

const std::vector<example>& examples() {
    static const std::vector<example> all = [] {
        std::vector<example> gathered = house_examples;
        for (const auto* const more : {&atomics_examples, &text_examples, &document_examples,
                                       &name_examples, &member_examples, &operation_examples,
                                       &prose_examples, &front_examples, &hops_examples})
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
    const tree files = {{library, "\n#include <coppice/io/internal/ring.hpp>\n"}};
    EXPECT_EQ(describe(run("include_direction", files)),
              "include/coppice/pool/x.hpp:2: room pool may not include room io\n");
}

}  // namespace
