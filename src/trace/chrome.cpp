// Writes the JSON of trace/chrome.hpp.
#include <coppice/trace/chrome.hpp>

#include <coppice/base/internal/file_name.hpp>
#include <coppice/base/internal/json_string.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <vector>

namespace coppice::trace {

namespace {

// Appends event objects to a JSON array.
class event_writer {
public:
    // Appends to `out`. Times are written relative to `origin_ns`.
    event_writer(std::string& out, std::int64_t origin_ns) : out_(out), origin_ns_(origin_ns) {}

    void name_track(std::size_t track, std::string_view name) {
        start(track, 'M', "thread_name");
        out_ += ",\"args\":{\"name\":" + internal::json_string(name) + "}}";
    }
    void add(std::size_t track, const event& e) {
        start(track, static_cast<char>(e.kind), e.name);
        const std::int64_t ns = e.time_ns - origin_ns_;
        char time[48];
        std::snprintf(time, sizeof time, ",\"ts\":%lld.%03d", static_cast<long long>(ns / 1000),
                      static_cast<int>(ns % 1000));
        out_ += time;
        if (e.kind == event_kind::instant) out_ += ",\"s\":\"t\"";
        if (e.value != event::no_value) {
            out_ += ",\"args\":{\"value\":" + std::to_string(e.value) + "}";
        }
        out_ += '}';
    }

private:
    void start(std::size_t track, char phase, std::string_view name) {
        out_ += first_ ? "\n" : ",\n";
        first_ = false;
        out_ += "{\"ph\":\"";
        out_ += phase;
        out_ += "\",\"pid\":1,\"tid\":" + std::to_string(track);
        if (!name.empty()) out_ += ",\"name\":" + internal::json_string(name);
    }
    std::string& out_;
    const std::int64_t origin_ns_;
    bool first_ = true;
};

}  // namespace

std::string chrome_json(std::span<const track> tracks, std::int64_t now_ns) {
    // The logs may grow meanwhile. Write exactly the events that exist now.
    std::vector<std::size_t> sizes;
    std::int64_t origin_ns = now_ns;
    for (const track& each : tracks) {
        sizes.push_back(each.log->size());
        if (sizes.back() != 0) origin_ns = std::min(origin_ns, each.log->at(0).time_ns);
    }
    std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    event_writer writer(out, origin_ns);
    std::uint64_t dropped = 0;
    for (std::size_t t = 0; t != tracks.size(); ++t) {
        const event_log& log = *tracks[t].log;
        writer.name_track(t, tracks[t].name);
        std::size_t open = 0;
        std::int64_t last_ns = now_ns;
        for (std::size_t i = 0; i != sizes[t]; ++i) {
            const event e = log.at(i);
            writer.add(t, e);
            if (e.kind == event_kind::begin) ++open;
            if (e.kind == event_kind::end) --open;
            last_ns = std::max(now_ns, e.time_ns);
        }
        if (const std::uint64_t lost = log.dropped(); lost != 0) {
            writer.add(t, {last_ns, "events were dropped", lost, event_kind::instant});
            dropped += lost;
        }
        for (; open != 0; --open) {
            writer.add(t, {last_ns, "", event::no_value, event_kind::end});
        }
    }
    return out + "\n],\"otherData\":{\"dropped_events\":" + std::to_string(dropped) + "}}\n";
}

void write_file(const std::string& path, const std::string& content) {
    const auto check = [&](bool fine) {
        if (!fine) throw std::system_error(errno, std::generic_category(), path);
    };
    std::FILE* const file = std::fopen(internal::whole_name(path), "w");
    check(file != nullptr);
    const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
    const bool closed = std::fclose(file) == 0;
    check(written && closed);
}

}  // namespace coppice::trace
