// The items that processes share: how they move, and how all find the end.
#include <coppice/mpi/internal/work_service.hpp>

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/share.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/token/block.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace coppice::mpi::internal {

namespace {

constexpr int request_of_work_tag = 0;
constexpr int reply_of_work_tag = 1;
// The most bytes of items that a reply has, unless one item has more: all processes but one begin
// without items, so what a thief gets must not cost more time than to work on it. A quarter of this
// makes thieves ask twice as often, and each may wait for 1 ms until the owner of the other process
// looks.
constexpr std::size_t items_max = 131072;
constexpr std::int64_t pause_min = 10'000;  // in nanoseconds, as the one below
constexpr std::int64_t pause_max = 1'000'000;

std::size_t most_bytes_of(std::size_t item_size) noexcept {
    return std::max<std::size_t>(items_max / item_size, 1) * item_size;
}

// Of the probe of wait_here(). No message has it.
constexpr int pause_tag = 2;

bytes empty_with_room(std::size_t size) {
    bytes made;
    made.reserve(size);
    return made;
}

constexpr auto never = execution::prop(execution::get_deadline, execution::instant::never());

// Return senders of a message, and of the reply to it. The other processes wait for this one, so
// they take spare memory. The reply may have items, so neither a stop nor a deadline ends the wait
// for it.
template <class Range>
auto tell(const communicator& over, const Range& objects, int rank) noexcept {
    call_arguments a(over, kind::send);
    a.from = memory_of(span_of(objects));
    a.to_rank = rank;
    a.to_tag = request_of_work_tag;
    a.holds_others = true;
    return initiate<named_request<kind::send>>(a, use_await);
}
auto get_reply(const communicator& over, bytes& into, int rank) noexcept {
    call_arguments a(over, kind::receive);
    a.into = memory_of(span_of(into));
    a.source = {rank, reply_of_work_tag};
    a.holds_others = true;
    return execution::unstoppable(initiate<named_request<kind::receive>>(a, use_await)) |
           execution::write_env(never);
}

// Returns a sender that completes after the time. The environment's thread looks for a message
// that never comes, and ends that at its deadline.
auto wait_here(const communicator& over, std::chrono::nanoseconds span) noexcept {
    const execution::instant end = execution::monotonic_now() + span;
    return execution::unstoppable(probe<std::byte>(over, {over.rank(), pause_tag})) |
           execution::write_env(execution::prop(execution::get_deadline, end)) |
           execution::then([](const envelope&) noexcept {}) |
           execution::upon_error([](const auto&) noexcept {}) |
           execution::upon_stopped([]() noexcept {});
}

// Returns a sender that completes after the time. If the default pool has ended, or cannot be made,
// its timer is not there.
auto pause(const communicator& over, std::chrono::nanoseconds span) noexcept {
    const communicator* const known = &over;
    return execution::just() | execution::let_value([span] {
               return execution::unstoppable(default_pool().get_scheduler().schedule_after(span) |
                                             execution::write_env(never));
           }) |
           execution::let_error(
               [known, span](const auto&) noexcept { return wait_here(*known, span); }) |
           execution::let_stopped([known, span]() noexcept { return wait_here(*known, span); });
}

}  // namespace

work_service::work_service(const communicator& over, std::size_t item_size)
    : item_size_(item_size),
      share_max_(most_bytes_of(item_size)),
      reply_(share_max_),
      got_(share_max_),
      offered_(empty_with_room(share_max_)),
      own_(over.duplicate()),
      is_shared_(own_.size() > 1),
      random_(0x9e3779b97f4a7c15U * (static_cast<std::uint64_t>(own_.rank()) + 1)) {
    service_.start(own_, listeners_.get_token());
}

// After the barrier no process asks: each has its replies, and has heard of every end. It fails if
// a process has failed.
work_service::~work_service() {
    drop_wave();
    std::error_code error;
    barrier(own_, block[error]);
    listeners_.request_stop();
    this_thread::sync_wait(listeners_.join());
}

work_counts work_service::counts() const noexcept {
    const std::scoped_lock lock(mutex_);
    return counts_;
}

task<> work_service::listen(task<> serving) {
    try {
        co_await std::move(serving);
    } catch (...) {
        is_lost_.store(true, relaxed);  // a hint
        throw;
    }
}

// Continues on the environment's thread, since its environment names no scheduler.
task<> work_service::serve() {
    while (true) {
        std::array<message, 1> got;
        const envelope e = co_await receive(own_, got, {any_source, request_of_work_tag});
        if (got[0].kind == what::end) {
            hear_end(got[0].run);
            continue;
        }
        const std::span<const std::byte> items = std::span(reply_).first(give());
        co_await send(own_, items, {e.source, reply_of_work_tag});
    }
}

// Leaves room for what accept() appends.
void work_service::make_room(std::size_t size) {
    const std::size_t wanted = offered_.size() + size + share_max_;
    if (wanted > offered_.capacity()) offered_.reserve(std::max(wanted, 2 * offered_.capacity()));
}

void work_service::append(std::span<const std::byte> items) {
    if (first_ != 0) {
        offered_.erase(offered_.begin(), offered_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
    }
    offered_.insert(offered_.end(), items.begin(), items.end());
    count_offered();
}

void work_service::add(std::span<const std::byte> item) {
    const std::scoped_lock lock(mutex_);
    make_room(item.size());
    append(item);
    ++sent_;  // a message to itself, which has arrived
    ++received_;
}

void work_service::offer(std::span<const std::byte> items) {
    const std::scoped_lock lock(mutex_);
    make_room(items.size());
    append(items);
}

// Moves the older half of what is offered to the reply, and returns its bytes.
std::size_t work_service::give() noexcept {
    const std::scoped_lock lock(mutex_);
    const std::size_t size = std::min(half_of_offered(), share_max_);
    if (size == 0 || !is_running_) return 0;
    std::memcpy(reply_.data(), offered_.data() + first_, size);
    first_ += size;
    count_offered();
    ++sent_;
    counts_.given += size / item_size_;
    return size;
}

// Allocates nothing: what was added since the process had no items has left room.
void work_service::accept(std::span<const std::byte> items) noexcept {
    if (items.empty()) {
        if (++refusals_ == own_.size() - 1) refusals_ = 0;
        return;
    }
    refusals_ = 0;
    pause_ = 0;
    counts_.taken += items.size() / item_size_;
    const std::scoped_lock lock(mutex_);
    append(items);
    ++received_;
}

void work_service::hear_end(std::uint32_t run) noexcept {
    const std::scoped_lock lock(mutex_);
    ++ends_heard_[run % 2];
    if (run == run_) is_ending_.store(true, relaxed);  // a hint
}

bool work_service::has_heard(std::int64_t ends) noexcept {
    const std::scoped_lock lock(mutex_);
    if (ends_heard_[run_ % 2] != ends) return false;
    is_running_ = false;
    ends_heard_[run_ % 2] = 0;  // the run after the next one has the same place
    return true;
}

int work_service::draw_victim() noexcept {
    random_ ^= random_ << 13;  // Marsaglia 2003, xorshift
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    const int others = own_.size() - 1;
    const int drawn = static_cast<int>((random_ >> 33) % static_cast<std::uint64_t>(others));
    return drawn < own_.rank() ? drawn : drawn + 1;
}

std::chrono::nanoseconds work_service::next_pause() noexcept {
    pause_ = std::clamp(2 * pause_, pause_min, pause_max);
    return std::chrono::nanoseconds(pause_);
}

void work_service::use(work& w) noexcept {
    const std::scoped_lock lock(mutex_);
    COPPICE_CHECK(
        !is_running_ || has_failed(),
        "mpi::work_sharing: run() while a run of this object is on, or after one that has "
        "failed with an error of MPI: await each run before the next");
    work_ = &w;
}

void work_service::begin() noexcept {
    drop_wave();
    const std::scoped_lock lock(mutex_);
    ++run_;
    is_running_ = true;
    is_ending_.store(ends_heard_[run_ % 2] != 0, relaxed);
    counts_ = {};
    received_before_ = -1;
    is_over_ = has_told_ = false;
    refusals_ = 0;
    pause_ = 0;
}

// Judges the wave that has ended, if one has, and contributes to the next, if there is no work.
void work_service::advance_wave() {
    {
        const std::scoped_lock lock(mutex_);
        if (wave_is_on_ && !wave_has_ended_) return;
        if (wave_is_on_) judge_wave();
        if (is_over_ || has_items()) return;
        wave_is_on_ = true;
        wave_has_ended_ = false;
        contributed_ = {sent_, received_, should_end() ? 1 : 0};
    }
    wave_.construct_with([this]() noexcept {
        return execution::connect(
            take_part<kind::all_reduce>(own_, contributed_, sums_, reduction::sum),
            wave_receiver(*this));
    });
    execution::start(wave_.get());
}

// Called by the operation of the wave, which the run may then destroy.
void work_service::end_wave(std::error_code error) noexcept {
    const std::scoped_lock lock(mutex_);
    wave_error_ = error;
    wave_has_ended_ = true;
}

void work_service::drop_wave() noexcept {
    if (std::exchange(wave_is_on_, false)) wave_.destroy();
}

void work_service::judge_wave() {
    drop_wave();
    if (wave_error_) throw std::system_error(wave_error_, "mpi::work_sharing");
    const auto [sent, received, ends] = sums_;
    is_over_ = ends != 0 || sent == received_before_;
    received_before_ = received;
}

task<> work_service::make_run() {
    return run(run_to_end());
}

task<> work_service::run(task<> to_end) {
    std::exception_ptr failure;
    has_agreed_ = false;
    try {
        co_await std::move(to_end);
        co_return;
    } catch (...) {
        failure = std::current_exception();
    }
    // Otherwise the others would wait for this process.
    if (!has_agreed_)
        static_cast<void>(communicator_access::owner(own_).report_failure(own_.native_handle()));
    while (has_open_wave()) co_await pause(own_, next_pause());  // it would write here
    std::rethrow_exception(failure);
}

bool work_service::has_open_wave() const noexcept {
    const std::scoped_lock lock(mutex_);
    return wave_is_on_ && !wave_has_ended_;
}

// One frame, which make_run() has allocated. A task that the run made would need memory while the
// others wait.
task<> work_service::run_to_end() {
    const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
    begin();
    std::exception_ptr failure;
    bool is_stopped = false;
    bool has_looked = false;  // the worker may have items of an earlier run
    while (!is_over_) {
        if (!should_end() && (!has_looked || has_items())) {
            failure = co_await execution::unstoppable(
                on_default_pool([working = work_, stop] { working->off(stop); }));
            has_looked = true;
        }
        if (!has_told_ && (failure || stop.stop_requested())) {
            is_stopped = !failure;
            has_told_ = true;
            is_ending_.store(true, relaxed);  // read by the worker, which does not run
            const std::array<message, 1> end{message{what::end, run_}};
            for (int rank = 0; rank != own_.size(); ++rank)
                if (rank != own_.rank()) co_await tell(own_, end, rank);
        }
        advance_wave();
        if (is_over_ || has_items()) continue;
        if (is_shared_ && !should_end()) {
            const int victim = draw_victim();
            const std::array<message, 1> question{message{what::ask, run_}};
            co_await tell(own_, question, victim);
            const envelope e = co_await get_reply(own_, got_, victim);
            accept(std::span<const std::byte>(got_).first(e.count));
        }
        if (!has_items() && (!is_shared_ || should_end() || refusals_ == 0))
            co_await pause(own_, next_pause());
    }
    // Nothing of the run is on its way after this.
    std::array<std::int64_t, 3> ends{failure ? 1 : 0, is_stopped ? 1 : 0, has_told_ ? 1 : 0};
    co_await take_part<kind::all_reduce>(own_, ends, ends, reduction::sum);
    while (!has_heard(ends[2] - (has_told_ ? 1 : 0))) {
        if (has_failed()) throw std::system_error(errc::process_failed, "mpi::work_sharing");
        co_await pause(own_, next_pause());
    }
    has_agreed_ = true;
    throw_if_failed(failure, ends[0] != 0);
    if (ends[1] != 0) co_await execution::just_stopped();
}

}  // namespace coppice::mpi::internal
