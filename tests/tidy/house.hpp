// The law of the house: which room may include which, where files live, and what must exist.
#pragma once

#include "source.hpp"

#include <map>
#include <set>
#include <sstream>

namespace tidy {

// Returns the rooms, and which rooms each may include. docs/architecture.md has the same table.
inline const std::map<std::string, std::set<std::string>>& rooms() {
    static const std::map<std::string, std::set<std::string>> table = {
        {"base", {}},
        {"trace", {"base"}},
        {"stop", {"base"}},
        {"signal", {"base"}},
        {"contract", {"base", "trace", "stop", "signal", "exec"}},
        {"exec", {"base", "stop"}},
        {"task", {"base", "stop", "exec"}},
        {"pool", {"base", "trace", "stop", "signal", "contract", "exec"}},
        {"parallel", {"base", "stop", "exec", "pool"}},
        {"token", {"base", "stop", "exec", "task"}},
        {"sync", {"base", "stop", "exec", "task", "token"}},
        {"graph", {"base", "trace", "stop", "exec", "pool", "token", "sync"}},
        {"io", {"base", "trace", "stop", "exec", "task", "token"}},
        {"tls", {"base", "stop", "exec", "task", "token", "io"}},
        {"mpi", {"base", "stop", "exec", "task", "pool", "parallel", "token", "sync", "io"}},
        {"http", {"base", "trace", "stop", "exec", "task", "pool", "token", "sync", "io"}},
        {"http2", {"base", "http"}},
    };
    return table;
}

// Returns the room of a library file, or "" for umbrellas and for files outside the library.
inline std::string room_of(const source_file& file) {
    if (file.under("include/coppice/")) return file.part(3).empty() ? "" : file.part(2);
    if (file.under("src/")) return file.part(2).empty() ? "" : file.part(1);
    return "";
}

inline bool is_umbrella(const source_file& file) {
    return file.under("include/coppice/") && file.is_header() && room_of(file).empty();
}

// Returns "deque" for include/coppice/pool/internal/deque.hpp.
inline std::string stem(const source_file& file) {
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    return name.substr(0, name.rfind('.'));
}

inline void include_direction(const tree& files, findings& out) {
    for (const source_file& file : files) {
        const std::string room = room_of(file);
        if (room.empty()) continue;
        const auto allowed = rooms().find(room);
        if (allowed == rooms().end()) continue;  // unknown_places reports it
        for (const include& i : file.includes) {
            if (i.quoted && file.under("include/")) {
                out.push_back(file.found(i.line, "\"" + i.target + "\": write <coppice/...>"));
            } else if (i.quoted && i.target.find('/') != std::string::npos) {
                out.push_back(file.found(i.line, "\"" + i.target + "\": not in this folder"));
            }
            if (!i.target.starts_with("coppice/")) continue;
            const std::string rest = i.target.substr(8);
            const std::size_t slash = rest.find('/');
            if (slash == std::string::npos) {
                out.push_back(file.found(i.line, "room " + room + " includes the umbrella <" +
                                                     i.target + ">; include the header you need"));
                continue;
            }
            const std::string other = rest.substr(0, slash);
            if (other == room || allowed->second.contains(other)) continue;
            out.push_back(file.found(i.line, "room " + room + " may not include room " + other));
        }
    }
}

// The table of docs/architecture.md, `room <- room room...`, equals rooms().
inline void documented_rooms(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (file.path != "docs/architecture.md") continue;
        std::set<std::string> shown;
        for (std::size_t i = 0; i != file.lines.size(); ++i) {
            std::istringstream line(file.lines[i]);
            std::string room, arrow, other;
            if (!(line >> room >> arrow) || arrow != "<-") continue;
            std::set<std::string> others;
            while (line >> other) {
                if (other != "nothing") others.insert(other);
            }
            shown.insert(room);
            const auto rule = rooms().find(room);
            if (rule == rooms().end() || rule->second != others)
                out.push_back(file.found(i + 1, "not what the law says about " + room));
        }
        for (const auto& [room, others] : rooms()) {
            if (!shown.contains(room)) out.push_back(file.found(1, "room " + room + " is missing"));
        }
    }
}

// <execution> links TBB, which only benchmarks do, for a rival. The others cost every user of exec
// and task compile time.
inline void banned_includes(const tree& files, findings& out) {
    for (const source_file& file : files) {
        const std::string room = room_of(file);
        const bool thrifty = file.under("include/") && (room == "exec" || room == "task");
        for (const include& i : file.includes) {
            if (i.quoted) continue;
            const bool costly =
                i.target == "chrono" || i.target == "thread" || i.target == "functional";
            const bool links = i.target == "execution" && !file.under("benchmarks/");
            if (links || (thrifty && costly)) {
                out.push_back(file.found(i.line, "<" + i.target + "> is banned here"));
            }
        }
    }
}

inline bool is_app(const tree& files, const std::string& folder) {
    return std::any_of(files.begin(), files.end(),
                       [&](const source_file& file) { return file.under("apps/" + folder + "/"); });
}

// Folders that are no room, and files that no build rule finds, would rot unnoticed.
inline void unknown_places(const tree& files, findings& out) {
    // serve: tests of the program in apps/serve; compose: tests of several rooms together; hostile:
    // attacks on programs.
    static const std::set<std::string> other_tests = {"model",        "names",   "fuzz", "support",
                                                      "compile_fail", "package", "tidy", "serve",
                                                      "compose",      "hostile"};
    for (const source_file& file : files) {
        if (!file.is_cpp()) continue;
        const std::string room = room_of(file);
        if (!room.empty() && !rooms().contains(room)) {
            out.push_back(file.found(1, "folder " + room + "/ is no room"));
        }
        if (file.path.find("/detail/") != std::string::npos) {
            out.push_back(file.found(1, "no detail/ folder: a helper lives with its user"));
        }
        if (file.under("src/") && (room.empty() || !file.part(3).empty())) {
            out.push_back(file.found(1, "only src/<room>/<name>.cpp is built"));
        }
        if (file.under("tests/") && !file.part(2).empty()) {
            const std::string folder = file.part(1);
            const bool tests = rooms().contains(folder) || is_app(files, folder);
            if (!tests && !other_tests.contains(folder)) {
                out.push_back(file.found(1, "tests/" + folder + "/ is no room and no program"));
            }
            const std::string suffix = tests               ? "_test.cpp"
                                       : folder == "model" ? "_model.cpp"
                                       : folder == "fuzz"  ? "_fuzz.cpp"
                                                           : ".cpp";
            const bool is_checker = file.path == "tests/model/checker.cpp";
            if (!file.is_header() && !file.path.ends_with(suffix) && !is_checker) {
                out.push_back(file.found(1, "only *" + suffix + " is built in this folder"));
            }
        }
        if (file.under("examples/")) {
            const std::string name = file.part(1);
            const bool numbered = name.size() > 3 && std::isdigit(name[0]) &&
                                  std::isdigit(name[1]) && name[2] == '_' && file.part(2).empty();
            if (!numbered) out.push_back(file.found(1, "an example is named NN_name.cpp"));
        }
    }
}

// An umbrella only includes headers. Declarations belong into a room.
inline void umbrellas_only_include(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!is_umbrella(file) || file.tokens.empty()) continue;
        out.push_back(file.found(file.tokens[0].line, "an umbrella header only includes"));
    }
}

// Returns true if `user` includes the header at `path`, by its library name or relative in quotes.
inline bool includes(const source_file& user, std::string_view path) {
    static constexpr std::string_view front = "include/";
    return std::any_of(user.includes.begin(), user.includes.end(), [&](const include& i) {
        if (path.starts_with(front)) return i.target == path.substr(front.size());
        std::string_view target = i.target;
        while (target.starts_with("../")) target.remove_prefix(3);
        return i.quoted && ("/" + std::string(path)).ends_with("/" + std::string(target));
    });
}

// A header that no other file includes is dead. For a room's header, tests do not count.
// coppice.hpp keeps the other umbrellas alive, and any file keeps coppice.hpp alive.
inline void dead_headers(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!file.is_header()) continue;
        const bool ours = !room_of(file).empty();
        const bool alive = std::any_of(files.begin(), files.end(), [&](const source_file& user) {
            return user.path != file.path && includes(user, file.path) &&
                   !(ours && user.under("tests/"));
        });
        if (!alive) out.push_back(file.found(1, "no file includes this header, except its tests"));
    }
}

// coppice.hpp is everything: it includes every other umbrella.
inline void whole_umbrella(const tree& files, findings& out) {
    const auto whole = std::find_if(files.begin(), files.end(), [](const source_file& f) {
        return f.path == "include/coppice/coppice.hpp";
    });
    for (const source_file& file : files) {
        if (!file.under("include/coppice/") || !file.is_header() || !room_of(file).empty())
            continue;
        if (whole == files.end() || (&*whole != &file && !includes(*whole, file.path)))
            out.push_back(file.found(1, "coppice.hpp does not include this umbrella"));
    }
}

// A header is tested by tests/<room>/<name>_test.cpp or tests/model/<name>_model.cpp, by a test of
// its room that includes it by name, or by the test listed here. A header that its room's umbrella
// leaves out is a helper: it is tested together with the file of its room that includes it.
struct coverage {
    std::string_view header;
    std::string_view test;
};
inline constexpr coverage covered_elsewhere[] = {
    {"include/coppice/base/internal/atomic.hpp", "tests/model/seam_model.cpp"},
    {"include/coppice/base/internal/atomic_model.hpp", "tests/model/seam_model.cpp"},
    {"include/coppice/base/internal/futex.hpp", "tests/model/seam_model.cpp"},
    {"include/coppice/trace/counter.hpp", "tests/pool/thread_pool_test.cpp"},
    {"include/coppice/task/internal/frame_pool.hpp", "tests/task/task_test.cpp"},
    {"include/coppice/token/use_await.hpp", "tests/io/socket_test.cpp"},
    {"include/coppice/io/buffer.hpp", "tests/io/socket_test.cpp"},
};

// Returns the paths of the library's files that have a test of their own.
inline std::set<std::string> directly_tested(const tree& files) {
    std::set<std::string> paths;
    for (const source_file& file : files) paths.insert(file.path);
    std::set<std::string> tested;
    for (const source_file& file : files) {
        const std::string room = room_of(file);
        if (room.empty()) continue;
        bool found = paths.contains("tests/" + room + "/" + stem(file) + "_test.cpp") ||
                     paths.contains("tests/model/" + stem(file) + "_model.cpp");
        for (const source_file& test : files) {
            found = found || (test.under("tests/" + room + "/") && includes(test, file.path));
        }
        for (const coverage& c : covered_elsewhere) {
            found = found || (file.path == c.header && paths.contains(std::string(c.test)));
        }
        if (found) tested.insert(file.path);
    }
    return tested;
}

// Returns true if its room has an umbrella and that leaves out `file`.
inline bool is_helper(const tree& files, const source_file& file) {
    bool room_has_umbrella = false;
    for (const source_file& umbrella : files) {
        if (!is_umbrella(umbrella)) continue;
        if (includes(umbrella, file.path)) return false;
        for (const include& i : umbrella.includes) {
            room_has_umbrella =
                room_has_umbrella || i.target.starts_with("coppice/" + room_of(file) + "/");
        }
    }
    return room_has_umbrella;
}

inline void untested_headers(const tree& files, findings& out) {
    std::set<std::string> tested = directly_tested(files);
    const auto is_tested = [&](const source_file& file) {
        return tested.contains(file.path) ||
               tested.contains("include/coppice/" + room_of(file) + "/" + stem(file) + ".hpp") ||
               tested.contains("include/coppice/" + room_of(file) + "/internal/" + stem(file) +
                               ".hpp");
    };
    for (std::size_t before = tested.size() + 1; before != tested.size();) {
        before = tested.size();
        for (const source_file& file : files) {
            if (!file.is_header() || room_of(file).empty() || is_tested(file)) continue;
            const auto passes_on = [&](const source_file& user) {
                return room_of(user) == room_of(file) && is_tested(user) &&
                       includes(user, file.path);
            };
            if (std::any_of(files.begin(), files.end(), passes_on) && is_helper(files, file))
                tested.insert(file.path);
        }
    }
    for (const source_file& file : files) {
        const std::string room = room_of(file);
        if (!file.is_header() || !file.under("include/") || room.empty() || is_tested(file))
            continue;
        out.push_back(file.found(1, "no test: write tests/" + room + "/" + stem(file) +
                                        "_test.cpp, or include it in a test of its room"));
    }
}

// Returns the words of a line of a CMake list, without the bracket that ends the list.
inline std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t begin = line.find_first_not_of(" )", at);
        if (begin == std::string_view::npos) break;
        at = std::min(line.find_first_of(" )", begin), line.size());
        words.emplace_back(line.substr(begin, at - begin));
    }
    return words;
}

// Tests that the thread sanitizer may skip start no thread, and no object that has threads.
inline void threads_of_single_threaded(const tree& files, findings& out) {
    static constexpr std::string_view starters[] = {
        "thread",         "jthread",      "thread_pool",        "contract_pool",
        "running_server", "context_pool", "parallel_scheduler", "get_parallel_scheduler"};
    for (const source_file& list : files) {
        if (list.path != "tests/single_threaded.cmake") continue;
        for (std::size_t i = 0; i != list.lines.size(); ++i) {
            if (!list.lines[i].starts_with("    ")) continue;
            for (const std::string& name : words_of(list.lines[i])) {
                const std::string path = "tests/" + name + "_test.cpp";
                const auto test =
                    std::find_if(files.begin(), files.end(),
                                 [&](const source_file& f) { return f.path == path; });
                if (test == files.end()) {
                    out.push_back(list.found(i + 1, path + " is gone"));
                    continue;
                }
                for (const token& t : test->tokens) {
                    const bool starts = std::find(std::begin(starters), std::end(starters),
                                                  t.text) != std::end(starters);
                    if (!starts) continue;
                    out.push_back(
                        test->found(t.line, t.text + ": strike this test from " + list.path));
                }
            }
        }
    }
}

}  // namespace tidy
