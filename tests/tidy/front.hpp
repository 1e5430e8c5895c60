// The law of fronts and backs: which headers users include, and which stay in their room.
#pragma once
// A room's front is include/coppice/<room>/*.hpp: its umbrella includes every one of these headers,
// so that a user finds them. Its back is include/coppice/<room>/internal/: no umbrella includes it,
// and no other room does, except where `seams` says why. The back of base belongs to all rooms. A
// back declares its names in a namespace `internal`, so that a using-directive does not bring them
// into a program, except where `shown_names` says why.

#include "house.hpp"
#include "names.hpp"

#include <array>

namespace tidy {

inline bool is_back(std::string_view path) {
    return path.starts_with("include/coppice/") &&
           path.find("/internal/") != std::string_view::npos;
}

// Every front header is in an umbrella, and no header of a back is.
inline void fronts_in_umbrellas(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (is_umbrella(file)) {
            for (const include& i : file.includes) {
                if (!is_back("include/" + i.target)) continue;
                out.push_back(file.found(i.line, "an umbrella includes the back of a room"));
            }
        }
        if (!file.under("include/") || !file.is_header() || room_of(file).empty()) continue;
        if (is_back(file.path)) continue;
        const bool in_umbrella =
            std::any_of(files.begin(), files.end(), [&](const source_file& umbrella) {
                return is_umbrella(umbrella) && includes(umbrella, file.path);
            });
        if (!in_umbrella)
            out.push_back(file.found(1, "no umbrella includes it: move it to internal/"));
    }
}

inline constexpr std::size_t readme_lines_max = 75;  // a page

// Returns true if a README names a header of its room's back, by itself or as "`*_request.hpp`".
inline bool names_back(const std::string& readme, const std::string& name) {
    const std::size_t last_word = name.rfind('_');
    if (last_word != std::string::npos &&
        readme.find("`*" + name.substr(last_word) + "`") != std::string::npos)
        return true;
    return readme.find("/" + name + ")") != std::string::npos ||
           readme.find("`" + name + "`") != std::string::npos;
}

// Each room has a README of at most a page, which links to every header of its front and names
// every header of its back.
inline void headers_in_readmes(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!file.under("include/") || !file.is_header() || room_of(file).empty()) continue;
        const std::string name = file.path.substr(file.path.rfind('/') + 1);
        const std::string page = "include/coppice/" + room_of(file) + "/README.md";
        const auto readme = std::find_if(files.begin(), files.end(),
                                         [&](const source_file& f) { return f.path == page; });
        const bool is_named =
            readme != files.end() &&
            (is_back(file.path) ? names_back(readme->text, name)
                                : readme->text.find("](" + name + ")") != std::string::npos);
        if (!is_named) out.push_back(file.found(1, page + " does not name it"));
    }
    for (const source_file& file : files) {
        const bool is_readme = file.under("include/coppice/") && file.part(3) == "README.md";
        if (is_readme && file.lines.size() > readme_lines_max)
            out.push_back(file.found(readme_lines_max + 1, "a room's README is one page"));
    }
}

// A use of another room's back that is allowed, with the reason.
struct seam {
    std::string_view user;    // a room, or a top folder
    std::string_view header;  // below include/coppice/
    std::string_view reason;
};
inline constexpr seam seams[] = {
    {"benchmarks", "exec/internal/stop_registration.hpp", "measures what it costs"},
    {"benchmarks", "http/internal/head_machines.hpp", "measures each instruction set"},
    {"contract", "exec/internal/invoke.hpp", "one way to call and to keep an exception"},
    {"contract", "exec/internal/scheduled_sender.hpp", "every scheduler's sender is made of it"},
    {"contract", "exec/internal/try_scheduled_sender.hpp", "as scheduled_sender.hpp"},
    {"contract", "exec/internal/start_race.hpp", "an end that may overtake start"},
    {"contract", "exec/internal/stop_registration.hpp", "no cost for unstoppable receivers"},
    {"contract", "signal/internal/directory.hpp", "the board is a directory of signal trees"},
    {"graph", "exec/internal/as_exception.hpp", "errors of any type as exceptions"},
    {"graph", "exec/internal/start_race.hpp", "a node whose operation may complete in its start"},
    {"graph", "pool/internal/work_item.hpp", "a node is an item of the pool"},
    {"graph", "sync/internal/wait_limits.hpp", "the stop and the deadline of a run"},
    {"graph", "token/internal/code_of.hpp", "one code for each kind of exception"},
    {"graph", "token/internal/completion_env.hpp", "what the waiter of a run tells it"},
    {"graph", "token/internal/stop_link.hpp", "an inplace_stop_token from a token of any type"},
    {"http", "io/internal/record_memory.hpp", "memory for encrypted records"},
    {"http", "task/internal/frame_pool.hpp", "frames of coroutines that are not tasks"},
    {"http", "task/internal/transfer.hpp", "resumes handlers so that their awaits are plain calls"},
    {"io", "exec/internal/as_exception.hpp", "error codes as exceptions, as tasks have them"},
    {"http2", "http/internal/scan.hpp", "one way to fold case and to trim"},
    {"io", "exec/internal/invoke.hpp", "one way to call and to keep an exception"},
    {"io", "exec/internal/runs_here.hpp", "a waiter on the loop's thread is resumed in place"},
    {"io", "exec/internal/scheduled_sender.hpp", "every scheduler's sender is made of it"},
    {"parallel", "exec/internal/adaptor.hpp", "its sender adapts that of schedule"},
    {"parallel", "exec/internal/as_exception.hpp", "errors of any type as exceptions"},
    {"parallel", "exec/internal/child_attrs.hpp", "its sender completes where schedule does"},
    {"parallel", "exec/internal/fork_team.hpp", "knows the workers of a scheduler"},
    {"parallel", "exec/internal/inplace_token_of.hpp", "the token that is in force for forks"},
    {"parallel", "exec/internal/invoke.hpp", "one way to call and to keep an exception"},
    {"parallel", "exec/internal/scheduled_sender.hpp", "every scheduler's sender is made of it"},
    {"parallel", "exec/internal/start_race.hpp", "a stage that may complete in its start"},
    {"parallel", "exec/internal/transformation.hpp", "signatures from those of schedule"},
    {"parallel", "pool/internal/blocking_call.hpp", "a caller that waits for a worker"},
    {"parallel", "pool/internal/default_worker.hpp", "what runs off the pool moves to it"},
    {"parallel", "pool/internal/loop_walks.hpp", "its loops are cut as those of pool"},
    {"parallel", "pool/internal/work_item.hpp", "schedules an item on the nearest pool"},
    {"pool", "contract/internal/scheduler.hpp", "contract_pool is a scheduler of contracts"},
    {"benchmarks", "pool/internal/pool_timers.hpp", "compares the locks of its wheels"},
    {"pool", "exec/internal/due_notice.hpp", "tells a timeout before a worker is free"},
    {"pool", "exec/internal/try_scheduled_sender.hpp", "as scheduled_sender.hpp"},
    {"pool", "exec/internal/stop_registration.hpp", "no cost for unstoppable receivers"},
    {"pool", "exec/internal/invoke.hpp", "one way to call and to keep an exception"},
    {"pool", "exec/internal/parallel_bulk.hpp", "bulk's chunks run on the workers"},
    {"pool", "exec/internal/scheduled_sender.hpp", "every scheduler's sender is made of it"},
    {"sync", "exec/internal/allocate.hpp", "which allocator select_range takes"},
    {"sync", "exec/internal/alternatives.hpp", "keeps the error of a branch that is a sender"},
    {"sync", "exec/internal/as_exception.hpp", "errors of any type as exceptions"},
    {"sync", "exec/internal/runs_here.hpp", "a waiter is resumed in place if it may be"},
    {"sync", "task/internal/suspension.hpp", "an await that may not suspend, as tasks do it"},
    {"sync", "task/internal/transfer.hpp", "resumes tasks with bounded stack, as tasks do"},
    {"sync", "token/internal/await_operation.hpp", "select takes operations apart"},
    {"sync", "token/internal/code_of.hpp", "one code for each kind of exception"},
    {"sync", "token/internal/completion_env.hpp", "what a waiter tells its operation"},
    {"sync", "token/internal/inline_start.hpp", "completions that must not recurse"},
    {"sync", "token/internal/outcome.hpp", "one way to throw an error code"},
    {"sync", "token/internal/stop_link.hpp", "an inplace_stop_token from a token of any type"},
    {"task", "exec/internal/alternatives.hpp", "keeps a result for several waiters"},
    {"task", "exec/internal/as_exception.hpp", "errors of any type as exceptions"},
    {"task", "exec/internal/linked_stop.hpp", "a stop source linked to the receiver's token"},
    {"task", "exec/internal/refused_await.hpp", "the messages of what cannot be awaited"},
    {"task", "exec/internal/starting.hpp", "starts without growing the stack"},
    {"task", "exec/internal/stop_registration.hpp", "no cost for unstoppable waiters"},
    {"mpi", "io/internal/mailbox.hpp", "hands requests to the thread that calls MPI"},
    {"mpi", "io/internal/stop_relay.hpp", "carries a stop to that thread"},
    {"tls", "io/internal/record_memory.hpp", "memory for records, which http needs too"},
    {"tls", "token/internal/completion_env.hpp", "what a waiter tells its operation"},
    {"token", "exec/internal/allocate.hpp", "which allocator an operation takes"},
    {"token", "exec/internal/linked_stop.hpp", "a stop source linked to the receiver's token"},
    {"token", "exec/internal/starting.hpp", "starts without growing the stack"},
    {"token", "task/internal/async_generator_next.hpp", "the coroutine behind next()"},
    {"token", "task/internal/frame_pool.hpp", "recycled memory for the states of callbacks"},
    {"token", "task/internal/suspension.hpp", "an await that may not suspend, as tasks do it"},
};

inline void foreign_backs(const tree& files, findings& out) {
    std::set<const seam*> used;
    for (const source_file& file : files) {
        if (file.under("tests/")) continue;  // tests may use every back
        std::string user = room_of(file);
        if (user.empty()) user = file.part(0);
        const bool is_program = user == "apps" || user == "examples";
        for (const include& i : file.includes) {
            const std::string path = "include/" + i.target;
            if (!is_back(path)) continue;
            const std::string room = i.target.substr(8, i.target.find('/', 8) - 8);
            if (room == user || (room == "base" && !is_program)) continue;
            const auto allowed =
                std::find_if(std::begin(seams), std::end(seams), [&](const seam& s) {
                    return s.user == user && "coppice/" + std::string(s.header) == i.target;
                });
            if (allowed != std::end(seams)) {
                used.insert(allowed);
            } else {
                out.push_back(file.found(i.line, user + " may not include the back of " + room));
            }
        }
    }
    // An exception that is no longer needed would hide the next fault.
    const auto law = std::find_if(files.begin(), files.end(), [](const source_file& f) {
        return f.path == "tests/tidy/front.hpp";
    });
    if (law == files.end()) return;
    for (const seam& s : seams) {
        if (!used.contains(&s))
            out.push_back(law->found(
                1, std::string(s.user) + " no longer includes " + std::string(s.header)));
    }
}

// A name that a back declares for users, with the reason.
struct shown_name {
    std::string_view header;  // below include/coppice/
    std::string_view name;
    std::string_view reason;
};
inline constexpr std::array<shown_name, 0> shown_names{};
// The rooms whose backs keep the law.
inline constexpr std::string_view closed_rooms[] = {"base", "contract", "exec", "graph",  "http",
                                                    "io",   "parallel", "pool", "signal", "stop",
                                                    "task", "token",    "trace"};

inline void shown_backs(const tree& files, findings& out) {
    std::set<const shown_name*> used;
    for (const source_file& file : files) {
        const bool closed = std::find(std::begin(closed_rooms), std::end(closed_rooms),
                                      room_of(file)) != std::end(closed_rooms);
        if (!closed || !is_back(file.path) || !file.is_header()) continue;
        for (const declaration& d : namespace_scope(file).all) {
            if (!d.space.starts_with("coppice")) continue;  // a specialization for std
            if ((d.space + "::").find("::internal::") != std::string::npos) continue;
            const auto allowed =
                std::find_if(shown_names.begin(), shown_names.end(), [&](const shown_name& s) {
                    return "include/coppice/" + std::string(s.header) == file.path &&
                           s.name == d.name;
                });
            if (allowed != shown_names.end()) {
                used.insert(&*allowed);
            } else {
                out.push_back(file.found(d.line, d.name + ": declare it in a front header, or in "
                                                          "the namespace internal"));
            }
        }
    }
    const auto law = std::find_if(files.begin(), files.end(), [](const source_file& f) {
        return f.path == "tests/tidy/front.hpp";
    });
    if (law == files.end()) return;
    for (const shown_name& s : shown_names) {
        if (!used.contains(&s))
            out.push_back(law->found(
                1, std::string(s.header) + " no longer declares " + std::string(s.name)));
    }
}

}  // namespace tidy
