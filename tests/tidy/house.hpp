// The law of the house: which room may include which, where files live, and what must exist.
#pragma once

#include "source.hpp"

#include <map>
#include <set>

namespace tidy {

// The rooms, and what each may include. The design's table, section 1; the only other copy.
inline const std::map<std::string, std::set<std::string>>& rooms() {
    static const std::map<std::string, std::set<std::string>> table = {
        {"base", {}},
        {"trace", {"base"}},
        {"stop", {"base"}},
        {"signal", {"base"}},
        {"contract", {"base", "trace", "stop", "signal"}},
        {"exec", {"base", "stop"}},
        {"task", {"base", "stop", "exec"}},
        {"pool", {"base", "trace", "stop", "signal", "contract", "exec"}},
        {"token", {"base", "stop", "exec", "task"}},
        {"io", {"base", "trace", "stop", "exec", "task", "token"}},
        {"http", {"base", "trace", "stop", "exec", "task", "pool", "token", "io"}},
    };
    return table;
}

// The room a library file belongs to, or "" for umbrellas and everything outside the library.
inline std::string room_of(const source_file& file) {
    if (file.under("include/coppice/")) return file.part(3).empty() ? "" : file.part(2);
    if (file.under("src/")) return file.part(2).empty() ? "" : file.part(1);
    return "";
}

// "deque" for include/coppice/pool/deque.hpp.
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

// <execution> links TBB; the others cost every user of exec and task compile time.
inline void banned_includes(const tree& files, findings& out) {
    for (const source_file& file : files) {
        const std::string room = room_of(file);
        const bool thrifty = file.under("include/") && (room == "exec" || room == "task");
        for (const include& i : file.includes) {
            if (i.quoted) continue;
            const bool costly =
                i.target == "chrono" || i.target == "thread" || i.target == "functional";
            if (i.target == "execution" || (thrifty && costly)) {
                out.push_back(file.found(i.line, "<" + i.target + "> is banned here"));
            }
        }
    }
}

// Folders that are no room, and files that no build rule picks up: they would rot in silence.
inline void unknown_places(const tree& files, findings& out) {
    static const std::set<std::string> other_tests = {"model",        "fuzz",    "support",
                                                      "compile_fail", "package", "tidy"};
    for (const source_file& file : files) {
        if (!file.is_cpp()) continue;
        const std::string room = room_of(file);
        if (!room.empty() && !rooms().contains(room)) {
            out.push_back(file.found(1, "folder " + room + "/ is no room of the design's table"));
        }
        if (file.path.find("/detail/") != std::string::npos) {
            out.push_back(file.found(1, "no detail/ folder: a helper lives with its user"));
        }
        if (file.under("src/") && (room.empty() || !file.part(3).empty())) {
            out.push_back(file.found(1, "only src/<room>/<name>.cpp is built"));
        }
        if (file.under("tests/") && !file.part(2).empty()) {
            const std::string folder = file.part(1);
            const bool is_room = rooms().contains(folder);
            if (!is_room && !other_tests.contains(folder)) {
                out.push_back(file.found(1, "tests/" + folder + "/ is no room"));
            }
            const std::string suffix = is_room             ? "_test.cpp"
                                       : folder == "model" ? "_model.cpp"
                                       : folder == "fuzz"  ? "_fuzz.cpp"
                                                           : ".cpp";
            if (!file.is_header() && !file.path.ends_with(suffix)) {
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

// An umbrella gathers rooms; what it would declare belongs into one of them.
inline void umbrellas_only_include(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!file.under("include/coppice/") || !file.part(3).empty() || file.tokens.empty())
            continue;
        out.push_back(file.found(file.tokens[0].line, "an umbrella header only includes"));
    }
}

// Whether `user` includes the header at `path`: by its library name, or quoted and relative.
inline bool includes(const source_file& user, std::string_view path) {
    static constexpr std::string_view library = "include/";
    return std::any_of(user.includes.begin(), user.includes.end(), [&](const include& i) {
        if (path.starts_with(library)) return i.target == path.substr(library.size());
        std::string_view target = i.target;
        while (target.starts_with("../")) target.remove_prefix(3);
        return i.quoted && ("/" + std::string(path)).ends_with("/" + std::string(target));
    });
}

// Umbrellas live by coppice.hpp, and that by anyone. A library header that only its test includes
// is dead: nobody can reach it.
inline void dead_headers(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!file.is_header()) continue;
        const bool ours = !room_of(file).empty();
        const bool alive = std::any_of(files.begin(), files.end(), [&](const source_file& user) {
            return user.path != file.path && includes(user, file.path) &&
                   !(ours && user.under("tests/"));
        });
        if (!alive) out.push_back(file.found(1, "no file includes this header, but for its tests"));
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
// its room that includes it by name, or by the test listed here.
struct coverage {
    std::string_view header;
    std::string_view test;
};
inline constexpr coverage covered_elsewhere[] = {
    {"include/coppice/base/atomic.hpp", "tests/model/seam_model.cpp"},
    {"include/coppice/base/atomic_model.hpp", "tests/model/seam_model.cpp"},
    {"include/coppice/base/futex.hpp", "tests/model/seam_model.cpp"},
    {"include/coppice/trace/counter.hpp", "tests/pool/thread_pool_test.cpp"},
    {"include/coppice/task/frame_pool.hpp", "tests/task/task_test.cpp"},
    {"include/coppice/pool/injector.hpp", "tests/pool/thread_pool_test.cpp"},
    {"include/coppice/pool/work_item.hpp", "tests/pool/thread_pool_test.cpp"},
    {"include/coppice/token/use_await.hpp", "tests/io/socket_test.cpp"},
    {"include/coppice/io/buffer.hpp", "tests/io/socket_test.cpp"},
    {"include/coppice/io/operation.hpp", "tests/io/socket_test.cpp"},
    {"include/coppice/io/ring.hpp", "tests/io/socket_test.cpp"},
};

inline void untested_headers(const tree& files, findings& out) {
    const auto exists = [&](std::string_view path) {
        return std::any_of(files.begin(), files.end(),
                           [&](const source_file& f) { return f.path == path; });
    };
    for (const source_file& file : files) {
        const std::string room = room_of(file);
        if (!file.is_header() || room.empty() || !file.under("include/")) continue;
        bool tested = exists("tests/" + room + "/" + stem(file) + "_test.cpp") ||
                      exists("tests/model/" + stem(file) + "_model.cpp");
        for (const source_file& test : files) {
            tested = tested || (test.under("tests/" + room + "/") && includes(test, file.path));
        }
        for (const coverage& c : covered_elsewhere) {
            tested = tested || (file.path == c.header && exists(c.test));
        }
        if (!tested) {
            out.push_back(file.found(1, "no test: write tests/" + room + "/" + stem(file) +
                                            "_test.cpp, or include it in a test of its room"));
        }
    }
}

}  // namespace tidy
