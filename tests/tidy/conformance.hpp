// The law of docs/conformance.md: a clause that is done names a test, and the test exists.
#pragma once
// A row of a table there is: clause, state, tests, remark. A test is `folder/file: suite.test`, of
// tests/folder/file.cpp.

#include "source.hpp"

namespace tidy {

// Returns the cells of a table's row, without the blanks around them.
inline std::vector<std::string> cells_of(std::string_view row) {
    std::vector<std::string> cells;
    while (row.starts_with("|")) {
        row.remove_prefix(1);
        std::string_view cell = row.substr(0, row.find('|'));
        row.remove_prefix(cell.size());
        while (cell.starts_with(" ")) cell.remove_prefix(1);
        while (cell.ends_with(" ")) cell.remove_suffix(1);
        cells.emplace_back(cell);
    }
    if (!cells.empty()) cells.pop_back();  // after the last bar
    return cells;
}

// Returns true if a file has TEST(suite, test), in any form of the macro.
inline bool has_test(const source_file& file, std::string_view suite, std::string_view test) {
    const std::vector<token>& all = file.tokens;
    for (std::size_t i = 1; i + 3 < all.size(); ++i) {
        if (all[i].text == suite && all[i - 1].text == "(" && all[i + 1].text == "," &&
            all[i + 2].text == test && all[i + 3].text == ")")
            return true;
    }
    return false;
}

// Returns the fault of a reference, `folder/file: suite.test`, or "" if it has none.
inline std::string wrong_with_test(const tree& files, std::string_view reference) {
    const std::size_t colon = reference.find(": ");
    const std::size_t dot = reference.find('.');
    if (colon == std::string_view::npos || dot == std::string_view::npos || dot < colon)
        return " is no test: write `folder/file: suite.test`";
    const std::string path = "tests/" + std::string(reference.substr(0, colon)) + ".cpp";
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const source_file& f) { return f.path == path; });
    if (file == files.end()) return " names no file of tests/";
    if (!has_test(*file, reference.substr(colon + 2, dot - colon - 2), reference.substr(dot + 1)))
        return " names no test of " + path;
    return {};
}

inline void proven_conformance(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (file.path != "docs/conformance.md") continue;
        for (std::size_t i = 0; i != file.lines.size(); ++i) {
            const std::vector<std::string> cells = cells_of(file.lines[i]);
            if (cells.size() != 4 || (cells[1] != "done" && cells[1] != "differs")) continue;
            std::size_t tests = 0;
            const std::string& named = cells[2];
            for (std::size_t at = named.find('`'); at != std::string::npos;) {
                const std::size_t end = named.find('`', at + 1);
                if (end == std::string::npos) break;
                const std::string reference = named.substr(at + 1, end - at - 1);
                const std::string wrong = wrong_with_test(files, reference);
                if (!wrong.empty()) out.push_back(file.found(i + 1, reference + wrong));
                ++tests;
                at = named.find('`', end + 1);
            }
            if (tests == 0) out.push_back(file.found(i + 1, cells[0] + " names no test"));
        }
    }
}

}  // namespace tidy
