// What /live and /live/events tell: reads every count, and how late the loops and the pool run
// posted work.
#include "live.hpp"

#include <coppice/exec/connect.hpp>
#include <coppice/exec/scheduler.hpp>

#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string_view>

namespace serve {

namespace {

using namespace coppice;

std::int64_t now() noexcept {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the user and system time of all threads, in nanoseconds.
std::int64_t processor_time() noexcept {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto of = [](const timeval& t) {
        return std::int64_t{t.tv_sec} * 1'000'000'000 + std::int64_t{t.tv_usec} * 1000;
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

// In bytes; 0 if the system does not say.
std::uint64_t resident_memory() noexcept {
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr) return 0;
    unsigned long long pages = 0;
    const bool good = std::fscanf(file, "%*u %llu", &pages) == 1;
    std::fclose(file);
    return good ? pages * static_cast<unsigned long long>(::sysconf(_SC_PAGESIZE)) : 0;
}

// Writes JSON. Names and texts are the program's own and need no escapes.
class json {
public:
    explicit json(std::string& text) : text_(text) {}
    json& name(std::string_view n) {
        separate();
        quote(n);
        text_ += ':';
        first_ = true;
        return *this;
    }
    template <class T>
    json& number(T v) {
        separate();
        text_ += std::to_string(v);
        return *this;
    }
    json& text(std::string_view t) {
        separate();
        quote(t);
        return *this;
    }
    json& open(char bracket) {
        separate();
        text_ += bracket;
        first_ = true;
        return *this;
    }
    json& close(char bracket) {
        text_ += bracket;
        first_ = false;
        return *this;
    }
    template <class T>
    json& member(std::string_view n, T v) {
        return name(n).number(v);
    }

private:
    void separate() {
        if (!std::exchange(first_, false)) text_ += ',';
    }
    void quote(std::string_view t) { ((text_ += '"') += t) += '"'; }
    std::string& text_;
    bool first_ = true;
};

void add_status(json& j, const http::server_statistics& s) {
    j.name("status").open('{');
    for (std::size_t i = 0; i != s.by_status.size(); ++i) {
        if (s.by_status[i] != 0) j.member(std::to_string(i + 100), s.by_status[i]);
    }
    j.close('}');
}

// Writes two buckets for each power of two, each with the number of all values up to its bound.
void add_latency(json& j, const http::server_statistics& s) {
    std::vector<std::uint64_t> bounds;
    for (std::uint64_t b = 1024; b < (std::uint64_t{1} << 35); b *= 2) {
        bounds.push_back(b);
        bounds.push_back(b + b / 2);
    }
    j.name("latency").open('{').name("bounds_ns").open('[');
    for (const std::uint64_t b : bounds) j.number(b);
    j.close(']').name("up_to").open('[');
    for (const std::uint64_t b : bounds) j.number(s.latency.count_up_to(b));
    j.close(']').member("all", s.latency.total()).close('}');
}

}  // namespace

std::uint64_t route_count::total() const noexcept {
    std::uint64_t sum = 0;
    // relaxed: as in add()
    for (const one& p : parts_) sum += p.count.load(std::memory_order_relaxed);
    return sum;
}

std::size_t route_count::part() noexcept {
    static std::atomic<std::size_t> threads{0};
    // relaxed: only the numbers differ
    thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % parts;
    return mine;
}

bool delay_probe::begin() noexcept {
    std::int64_t none = 0;
    // acquire: pairs with end(), whose last access this is; relaxed: nothing was changed
    return begun_.compare_exchange_strong(none, now(), std::memory_order_acquire,
                                          std::memory_order_relaxed);
}

void delay_probe::end() noexcept {
    // relaxed: figures, for readers that look at any time
    last_.store(now() - begun_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    begun_.store(0, std::memory_order_release);  // release: pairs with begin()
}

std::int64_t delay_probe::delay() const noexcept {
    // acquire: of a measurement that has ended, last_ is seen
    const std::int64_t begun = begun_.load(std::memory_order_acquire);
    const std::int64_t last = last_.load(std::memory_order_relaxed);  // relaxed: a figure
    return begun != 0 ? std::max(last, now() - begun) : last;
}

struct live_board::loop : io::operation {
    explicit loop(io::context& c) noexcept : operation(&run), context(c) {}
    void measure() noexcept {
        if (probe.begin()) context.post(*this);
    }
    static void run(operation* op) noexcept { static_cast<loop*>(op)->probe.end(); }
    io::context& context;
    delay_probe probe;
    std::atomic<std::uint64_t> own{0};
    std::atomic<std::uint64_t> own_events{0};
};

struct live_board::pool_probe {
    explicit pool_probe(thread_pool& p) noexcept : pool(p) {}
    struct receiver {
        using receiver_concept = execution::receiver_tag;
        void set_value() noexcept { probe->end(); }
        void set_stopped() noexcept { probe->end(); }
        delay_probe* probe;
    };
    // If the probe begins, the previous operation has completed.
    void measure() {
        if (!probe.begin()) return;
        under_way.emplace(*this);
        execution::start(under_way->operation);
    }
    struct measurement {
        explicit measurement(pool_probe& of)
            : operation(execution::connect(execution::schedule(of.pool.get_scheduler()),
                                           receiver{&of.probe})) {}
        decltype(execution::connect(
            execution::schedule(std::declval<thread_pool&>().get_scheduler()),
            std::declval<receiver>())) operation;
    };
    thread_pool& pool;
    delay_probe probe;
    std::optional<measurement> under_way;
};

live_board::live_board(const http::server& server) : server_(server) {
    for (const auto& l : server.statistics().loops) {
        loops_.push_back(std::make_unique<loop>(*l.context));
    }
    if (thread_pool* const pool = server.pool()) pool_ = std::make_unique<pool_probe>(*pool);
}

live_board::~live_board() = default;

live_board::loop* live_board::find(const io::context& on) const noexcept {
    for (const auto& l : loops_) {
        if (&l->context == &on) return l.get();
    }
    return nullptr;
}

void live_board::add_own(const io::context& on) noexcept {
    // relaxed: a count
    if (loop* const l = find(on)) l->own.fetch_add(1, std::memory_order_relaxed);
}

void live_board::add_own_events(const io::context& on) noexcept {
    // relaxed: a count
    if (loop* const l = find(on)) l->own_events.fetch_add(1, std::memory_order_relaxed);
}

bool live_board::is_prompt(std::chrono::nanoseconds most) noexcept {
    bool prompt = true;
    for (const auto& l : loops_) {
        prompt = prompt && l->probe.delay() <= most.count();
        l->measure();
    }
    return prompt;
}

live_look live_board::look(const std::deque<route_count>& routes, const std::string& about) {
    const http::server_statistics s = server_.statistics();
    const std::int64_t at = now();  // the time of the counts; rates are computed from it
    std::string text;
    json j(text);
    j.open('{').member("version", 1).member("now_ns", at);
    text += about;
    j.member("cpu_ns", processor_time()).member("memory_bytes", resident_memory());
    j.member("requests", s.requests).member("connections", s.open);
    j.member("accepted", s.accepted).member("refused", s.refused).member("shed", s.shed);
    j.member("timed_out", s.timed_out).member("exceptions", s.exceptions);
    j.member("stopped", s.stopped).member("received", s.bytes_received);
    j.member("sent", s.bytes_sent);
    // relaxed: a figure
    j.member("look_ns", look_duration_.load(std::memory_order_relaxed));
    add_status(j, s);
    add_latency(j, s);
    j.name("loops").open('[');
    for (std::size_t i = 0; i != loops_.size(); ++i) {
        loop& l = *loops_[i];
        j.open('{').member("requests", s.loops[i].requests);
        // relaxed: counts
        j.member("own", l.own.load(std::memory_order_relaxed));
        j.member("own_events", l.own_events.load(std::memory_order_relaxed));
        j.member("connections", s.loops[i].connections).member("delay_ns", l.probe.delay());
        j.close('}');
        l.measure();
    }
    j.close(']').name("workers").open('[');
    for (std::size_t i = 0; pool_ != nullptr && i != pool_->pool.size(); ++i) {
        const worker_counts c = pool_->pool.counts(i);
        j.open('{').member("runs", c.runs).member("steals", c.steals);
        j.member("lost", c.failed_steals).member("parks", c.parks).close('}');
    }
    j.close(']');
    if (pool_ != nullptr) {
        j.member("pool_delay_ns", pool_->probe.delay());
        pool_->measure();
    }
    j.name("routes").open('[');
    for (const route_count& r : routes) {
        j.open('{').name("name").text(r.name()).member("asked", r.total()).close('}');
    }
    j.close(']').close('}');
    look_duration_.store(now() - at, std::memory_order_relaxed);  // relaxed: a figure
    return {execution::instant(at), std::move(text)};
}

std::shared_ptr<const live_look> live_board::recent_look(const std::deque<route_count>& routes,
                                                         const std::string& about) {
    const std::lock_guard lock(mutex_);
    if (recent_ == nullptr || execution::instant(now()) >= recent_->at + period) {
        recent_ = std::make_shared<live_look>(look(routes, about));
    }
    return recent_;
}

}  // namespace serve
