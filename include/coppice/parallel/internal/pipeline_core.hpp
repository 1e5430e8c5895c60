// pipeline_core: the run of a pipeline, from the source through its stages to the end.
#pragma once
// A visit is the time that a thread spends in the pipeline. The thread takes the source, reads an
// item, releases the source, takes the item through as many stages as it can, and begins again.
// After it releases the source, it forks a call that lets a thief make a visit of its own. When it
// leaves the gate of a serial stage in which another item waits, it forks a call that continues
// with that item, and makes the call itself unless a thief took it. So a single worker takes each
// item to the end before it reads the next. The number of stages bounds the depth of the stack.
//
// A visit ends when the source has ended or no slot is free. If another visit holds the source, the
// thread waits for it briefly: coming back later would cost a wake-up or a theft.
//
// The pipeline reports the first error in the order of the items. Items behind the failed one are
// destroyed, and pass the remaining gates as empty slots. Items before it continue: one may fail.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/base/internal/no_fork_context.hpp>
#include <coppice/exec/affine.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/parallel/internal/pipeline_types.hpp>
#include <coppice/pool/internal/default_worker.hpp>

#include <limits>
#include <memory>
#include <new>
#include <utility>

namespace coppice::parallel::internal {

template <class Sch, class Source, class... Stages>
class pipeline_core : immovable {
    static constexpr std::size_t stages = sizeof...(Stages);

public:
    using env_type = stage_env<Sch>;
    template <std::size_t I>
    using item = typename pipeline_item<I, env_type, Source, Stages...>::type;

    // Errors: std::bad_alloc.
    pipeline_core(const Sch& sch, std::size_t slots, Source source, std::tuple<Stages...> all)
        : sch_(sch),
          source_(static_cast<Source&&>(source)),
          stages_(static_cast<std::tuple<Stages...>&&>(all)),
          slots_(new slot[internal::slots_to_make(slots, sizeof(slot))]),
          slot_count_(slots) {
        COPPICE_CHECK(slots != 0, "pipeline() with room for no item: pass at least 1");
        make_gates(slots, std::make_index_sequence<stages>());
    }

    // Runs the pipeline on this thread, until the thread would have to wait or has no work left.
    // The last visit tells `end`, perhaps on another thread and before run() returns.
    void run(inplace_stop_token token, pipeline_end& end) noexcept {
        token_ = token;
        end_ = &end;
        begin_visit([](visit&) {});
    }
    // Called after the end. Returns the first error in the order of the items, if any.
    std::exception_ptr error() const noexcept {
        const std::uint64_t first = failed_.load(relaxed);  // relaxed: after the end
        for (std::size_t i = 0; first != no_item && i != slot_count_; ++i) {
            if (slots_[i].error && slots_[i].number == first) return slots_[i].error;
        }
        return nullptr;
    }
    // Called after the end. Returns false if the source was not called again because of a stop.
    bool is_complete() const noexcept { return !left_out_.load(relaxed); }

private:
    template <class, std::size_t>
    friend class stage_receiver;
    // A visit that finds the source busy looks again after half a microsecond. If items are short,
    // the other visit takes many of them meanwhile. If the visits alternated item by item, the
    // words of the gates would move between the processors for each item.
    static constexpr unsigned tries_max = 4;
    static constexpr unsigned pauses = 32;
    static constexpr std::uint64_t no_item = std::numeric_limits<std::uint64_t>::max();

    template <std::size_t I>
    using stage_type = std::tuple_element_t<I, std::tuple<Stages...>>;
    template <std::size_t I>
    using result = typename pipeline_item<I + 1, env_type, Source, Stages...>::result;
    template <std::size_t I>
    static constexpr bool waits = stage_output<result<I>, env_type>::waits;

    template <std::size_t I>
    struct operation_of {
        struct type {};
    };
    template <std::size_t I>
        requires(waits<I>)
    struct operation_of<I> {
        using type =
            execution::connect_result_t<decltype(execution::affine(std::declval<result<I>>())),
                                        stage_receiver<pipeline_core, I>>;
    };
    template <class Indices>
    struct slot_of;
    template <std::size_t... I>
    struct alignas(64) slot_of<std::index_sequence<I...>> : slot_base {
        room_for<item<0>, item<I + 1>...> items[2];  // the item, and what a stage makes of it
        room_for<typename operation_of<I>::type...> operation;
    };
    using slot = slot_of<std::make_index_sequence<stages>>;

    struct concurrent_gate {};
    struct serial_gate {
        pile_gate pile;
        gate_waiter* first = nullptr;  // of the holder: the oldest that waits
    };
    template <class Stage>
    using gate = std::conditional_t<
        Stage::kind == stage_kind::concurrent, concurrent_gate,
        std::conditional_t<Stage::kind == stage_kind::serial, serial_gate, order_gate>>;

    // What one thread does between its entry and its end.
    struct visit {
        slot* freed = nullptr;
    };
    // A call that a visit has forked.
    struct fork : immovable {
        fork(pipeline_core& self, slot* with) noexcept : core(self), item(with) {}
        pipeline_core& core;
        slot* item;
        handed_over to_thief;
    };

    template <std::size_t... I>
    void make_gates(std::size_t slots, std::index_sequence<I...>) {
        [[maybe_unused]] const auto make = [slots](auto& each) {
            if constexpr (std::is_same_v<std::remove_reference_t<decltype(each)>, order_gate>) {
                each.make(slots);
            }
        };
        (make(std::get<I>(gates_)), ...);
    }

    // Calls begin(visit), then takes items while it can. The caller has counted the visit.
    template <class Begin>
    void begin_visit(Begin begin) noexcept {
        {
            const fork_context inherited(&token_);
            if (fork_deque::current() != nullptr) {
                make_visit(begin);
            } else {
                const in_order_here here;
                make_visit(begin);
            }
        }
        if (!visits_.end()) return;
        const no_fork_context none;  // the token that this thread may have inherited ends now
        end_->ended();
    }
    template <class Begin>
    void make_visit(Begin& begin) noexcept {
        visit v;
        begin(v);
        while (take_source(v)) {
            slot& free = free_slot(v);
            if (!read(free)) return source_gate_.end();
            source_gate_.leave(free_ != nullptr || fresh_ != slot_count_);
            fork other(*this, nullptr);
            fork_slot* const forked = push(&run_visit, other);
            enter<0>(free, v);
            if (forked != nullptr) pop(*forked, other);
        }
    }
    // Returns true if this visit has the source, and a free slot.
    bool take_source(visit& v) noexcept {
        gate_waiter* pile = nullptr;
        source_gate::outcome got = source_gate::outcome::busy;
        for (unsigned i = 0; got == source_gate::outcome::busy && i != tries_max; ++i) {
            for (unsigned pause = i == 0 ? 0 : pauses; pause != 0; --pause) spin_hint();
            got = source_gate_.try_take(v.freed != nullptr, pile);
        }
        if (got != source_gate::outcome::taken && v.freed != nullptr) {
            flush(v);  // and then try again: the source may just have been left
            got = source_gate_.try_take(false, pile);
        }
        if (got != source_gate::outcome::taken) return false;
        if (free_ == nullptr) {
            free_ = pile;
        } else if (pile != nullptr) {
            gate_waiter* last = pile;
            while (last->next.read() != nullptr) last = last->next.read();
            last->next.write(free_);
            free_ = pile;
        }
        return true;
    }
    void flush(visit& v) noexcept {
        if (v.freed != nullptr) source_gate_.put(*std::exchange(v.freed, nullptr));
    }
    // Called by the visit that holds the source.
    slot& free_slot(visit& v) noexcept {
        if (v.freed != nullptr) return *std::exchange(v.freed, nullptr);
        if (free_ != nullptr) return static_cast<slot&>(*std::exchange(free_, free_->next.read()));
        slots_[fresh_].core = this;
        return slots_[fresh_++];
    }
    // Returns false if there is no further item. After a failure or a stop, it does not call the
    // source.
    bool read(slot& s) noexcept {
        if (failed_.load(relaxed) != no_item) return false;  // relaxed: saves work
        if (left_out_.load(relaxed) || token_.stop_requested()) {
            left_out_.store(true, relaxed);  // relaxed: read after the end
            return false;
        }
        s.number = next_number_;
        try {
            auto&& given = source_();
            if (!given) return false;
            ::new (s.items[0].bytes) item<0>(*static_cast<decltype(given)&&>(given));
        } catch (...) {
            fail(s, std::current_exception());
            return false;
        }
        ++next_number_;
        s.holds_item = true;
        return true;
    }

    fork_slot* push(forked_call function, fork& with) noexcept {
        fork_deque* const deque = fork_deque::current();
        return deque == nullptr ? nullptr : deque->push(function, &with);
    }
    // Returns true if the caller must make the call; false if a thief does.
    bool pop(fork_slot& forked, const fork& with) noexcept {
        fork_deque* const deque = fork_deque::current();
        if (deque->pop(&forked)) return true;
        deque->let_go(&forked);
        with.to_thief.wait();
        return false;
    }
    static void run_visit(void* forked, fork_slot&) noexcept {
        fork& mine = *static_cast<fork*>(forked);
        pipeline_core& self = mine.core;
        self.visits_.add();
        mine.to_thief.done();
        self.begin_visit([](visit&) {});
    }
    template <std::size_t I>
    static void run_stage(void* forked, fork_slot&) noexcept {
        fork& mine = *static_cast<fork*>(forked);
        pipeline_core& self = mine.core;
        slot& s = *mine.item;
        self.visits_.add();
        mine.to_thief.done();
        self.begin_visit([&self, &s](visit& v) { self.template go_on<I>(&s, v); });
    }

    // Takes an item into stage I, unless it has to wait for it.
    template <std::size_t I>
    void enter(slot& s, visit& v) noexcept {
        if constexpr (I == stages) {
            finish(s, v);
        } else {
            if constexpr (stage_type<I>::kind == stage_kind::serial) {
                if (!std::get<I>(gates_).pile.enter(s)) return;
            } else if constexpr (stage_type<I>::kind == stage_kind::serial_in_order) {
                if (!std::get<I>(gates_).enter(s.number, s)) return;
            }
            go_on<I>(&s, v);
        }
    }
    // Runs stage I for an item that has entered, and for those that enter behind it.
    template <std::size_t I>
    void go_on(slot* s, visit& v) noexcept {
        while (s != nullptr && call<I>(*s)) s = leave<I>(*s, v);
    }
    // Continues with the item behind stage I. Returns the next item inside, if no thief took it.
    template <std::size_t I>
    slot* leave(slot& s, visit& v) noexcept {
        slot* const next = open<I>(s);
        if (next == nullptr) {
            enter<I + 1>(s, v);
            return nullptr;
        }
        fork rest(*this, next);
        fork_slot* const forked = push(&run_stage<I>, rest);
        enter<I + 1>(s, v);
        flush(v);
        return forked == nullptr || pop(*forked, rest) ? next : nullptr;
    }
    template <std::size_t I>
    slot* open(slot& s) noexcept {
        [[maybe_unused]] auto& mine = std::get<I>(gates_);
        if constexpr (stage_type<I>::kind == stage_kind::serial_in_order) {
            return static_cast<slot*>(mine.leave(s.number));
        } else if constexpr (stage_type<I>::kind == stage_kind::serial) {
            if (mine.first == nullptr) {
                gate_waiter* const pile = mine.pile.take_or_leave();
                if (pile == nullptr) return nullptr;  // another visit may hold the gate now
                mine.first = reversed(pile);
            }
            return static_cast<slot*>(std::exchange(mine.first, mine.first->next.read()));
        } else {
            return nullptr;
        }
    }
    void finish(slot& s, visit& v) noexcept {
        using last = item<stages>;
        if constexpr (!std::is_void_v<last>) {
            if (s.holds_item) s.items[stages % 2].template as<last>().~last();
        }
        s.holds_item = false;
        if (s.error) return;  // keeps the slot, for its error; the source has ended
        flush(v);
        v.freed = &s;
    }

    template <std::size_t I>
    void destroy_item(slot& s) noexcept {
        using type = item<I>;
        s.items[I % 2].template as<type>().~type();
        s.holds_item = false;
    }
    // Calls stage I, unless an earlier item has failed. Returns false if the stage waits.
    template <std::size_t I>
    bool call(slot& s) noexcept {
        if (!s.holds_item) return true;
        if (s.number > failed_.load(relaxed)) {  // relaxed: saves work
            destroy_item<I>(s);
            return true;
        }
        if constexpr (waits<I>) {
            return start_stage<I>(s);
        } else {
            try {
                make<I + 1>(s, [this, &s]() -> decltype(auto) { return invoke_stage<I>(s); });
            } catch (...) {
                fail(s, std::current_exception());
            }
            end_stage<I>(s);
            return true;
        }
    }
    template <std::size_t I>
    decltype(auto) invoke_stage(slot& s) {
        return execution::internal::invoke(std::get<I>(stages_).f,
                                           std::move(s.items[I % 2].template as<item<I>>()));
    }
    // Makes item I from the result of f.
    template <std::size_t I, class F>
    void make(slot& s, F f) {
        if constexpr (std::is_void_v<item<I>>) {
            f();
        } else {
            ::new (s.items[I % 2].bytes) item<I>(f());
        }
    }
    // Destroys the input of stage I. After an error, the stage has no output.
    template <std::size_t I>
    void end_stage(slot& s) noexcept {
        destroy_item<I>(s);
        s.holds_item =
            !s.error && !std::exchange(s.was_stopped, false) && !std::is_void_v<item<I + 1>>;
    }
    void fail(slot& s, std::exception_ptr error) noexcept {
        s.error = std::move(error);
        std::uint64_t first = failed_.load(relaxed);  // relaxed: saves work; read after the end
        while (s.number < first &&
               !failed_.compare_exchange_weak(first, s.number, relaxed, relaxed)) {
        }
    }

    template <std::size_t I>
    bool start_stage(slot& s) noexcept {
        using operation = typename operation_of<I>::type;
        using receiver = stage_receiver<pipeline_core, I>;
        s.race.open();
        visits_.add();  // for the thread that continues behind the stage
        try {
            ::new (s.operation.bytes) operation(execution::connect(
                execution::affine(invoke_stage<I>(s)), receiver(s, env_type{&sch_, token_})));
        } catch (...) {
            fail(s, std::current_exception());
            end_stage<I>(s);
            visits_.drop();
            return true;
        }
        execution::start(s.operation.template as<operation>());
        if (!s.race.returned()) return false;
        end_waiting<I>(s);
        visits_.drop();
        return true;
    }
    template <std::size_t I>
    void end_waiting(slot& s) noexcept {
        using operation = typename operation_of<I>::type;
        s.operation.template as<operation>().~operation();
        end_stage<I>(s);
    }
    // Called when the sender of stage I has completed, and its outcome is in the slot.
    template <std::size_t I>
    static void continue_behind(slot& s) noexcept {
        if (!s.race.completed()) return;
        pipeline_core& self = *static_cast<pipeline_core*>(s.core);
        self.begin_visit([&self, &s](visit& v) {
            self.template end_waiting<I>(s);
            self.template go_on<I>(self.template leave<I>(s, v), v);
        });
    }
    template <std::size_t I, class... Values>
    static void stage_value(slot_base& base, Values&&... values) noexcept {
        slot& s = static_cast<slot&>(base);
        if constexpr (sizeof...(Values) != 0) {
            using type = item<I + 1>;
            try {
                ::new (s.items[(I + 1) % 2].bytes) type(static_cast<Values&&>(values)...);
            } catch (...) {
                static_cast<pipeline_core*>(s.core)->fail(s, std::current_exception());
            }
        }
        continue_behind<I>(s);
    }
    template <std::size_t I>
    static void stage_error(slot_base& s, std::exception_ptr error) noexcept {
        static_cast<pipeline_core*>(s.core)->fail(static_cast<slot&>(s), std::move(error));
        continue_behind<I>(static_cast<slot&>(s));
    }
    template <std::size_t I>
    static void stage_stopped(slot_base& base) noexcept {
        slot& s = static_cast<slot&>(base);
        s.was_stopped = true;
        static_cast<pipeline_core*>(s.core)->left_out_.store(true, relaxed);
        continue_behind<I>(s);
    }

    const Sch sch_;
    Source source_;
    std::tuple<Stages...> stages_;
    std::tuple<gate<Stages>...> gates_;
    const std::unique_ptr<slot[]> slots_;
    const std::size_t slot_count_;
    inplace_stop_token token_;
    pipeline_end* end_ = nullptr;
    // Used by the visit that holds the source:
    gate_waiter* free_ = nullptr;
    std::size_t fresh_ = 0;  // slots from here on were never used
    std::uint64_t next_number_ = 0;
    // Shared by all visits:
    alignas(64) source_gate source_gate_;
    alignas(64) atomic<std::uint64_t> failed_{no_item};  // the first item that has failed
    atomic<bool> left_out_{false};                       // a stop left items out
    visit_count visits_;
};

}  // namespace coppice::parallel::internal
