// A receiver of your own: where a sender's result goes, and what its operation may query. You need
// one where asynchronous work meets other code: here a slot in an event-driven program's table.
#include <coppice/execution.hpp>

#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

namespace ex = coppice::execution;

// The request for which an operation runs. A forwarding query passes through all adaptors.
struct get_request_id_t : coppice::forwarding_query_t {
    template <class Env>
        requires requires(const Env& env, get_request_id_t q) { env.query(q); }
    int operator()(const Env& env) const noexcept {
        return env.query(*this);
    }
};
inline constexpr get_request_id_t get_request_id{};

// One request of the program. The operation is a member, so nothing is allocated for it.
class slot {
public:
    // [receiver]
    // Copied and moved freely. Points to the slot, which outlives it.
    class receiver {
    public:
        using receiver_concept = ex::receiver_tag;

        explicit receiver(slot& s) noexcept : slot_(&s) {}

        void set_value(std::string text) && noexcept { slot_->finish(std::move(text)); }
        void set_error(std::exception_ptr error) && noexcept {
            try {
                std::rethrow_exception(std::move(error));
            } catch (const std::exception& e) {
                slot_->finish(std::string("failed: ") + e.what());
            }
        }
        void set_stopped() && noexcept { slot_->finish("stopped"); }

        // Queried by the operation and by its children.
        auto get_env() const noexcept {
            return ex::env(ex::prop(get_request_id, slot_->id),
                           ex::prop(coppice::get_stop_token, slot_->source.get_token()));
        }

    private:
        slot* slot_;
    };
    // [/receiver]

    explicit slot(int number) noexcept : id(number) {}
    slot(slot&&) = delete;

    void finish(std::string text) noexcept { result = std::move(text); }

    int id;
    coppice::inplace_stop_source source;
    std::string result = "running";
};

// The work knows only the query, not the slots.
auto work(int divisor) {
    return ex::read_env(coppice::get_stop_token) | ex::let_value([divisor](auto token) {
               return ex::read_env(get_request_id) | ex::then([divisor, token](int id) {
                          if (divisor == 0) throw std::runtime_error("division by zero");
                          return "request " + std::to_string(id) + ": " +
                                 std::to_string(84 / divisor) +
                                 (token.stop_requested() ? ", stop requested" : "");
                      });
           });
}

int main() {
    using operation = ex::connect_result_t<decltype(work(2)), slot::receiver>;
    static_assert(ex::receiver<slot::receiver>);

    std::array<slot, 3> slots{slot(1), slot(2), slot(3)};
    operation first = ex::connect(work(2), slot::receiver(slots[0]));
    operation second = ex::connect(work(0), slot::receiver(slots[1]));
    operation third = ex::connect(work(4), slot::receiver(slots[2]));
    slots[2].source.request_stop();

    ex::start(first);
    ex::start(second);
    ex::start(third);
    for (const slot& s : slots) std::printf("%s\n", s.result.c_str());
}
