// The tasks of a client: templates over the token by which a caller may stop its request.
#pragma once

#include <coppice/exec/just.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/http/client_message.hpp>
#include <coppice/http/internal/client_call.hpp>
#include <coppice/http/internal/client_core.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/task/task.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace coppice::http::internal {

struct client_tasks {
    using opened = std::unique_ptr<client_opened, client_opened_end>;

    // Performs client::send().
    template <class Token>
    static task<client_response> send(client_core& client, client_request r, Token token) {
        // The frame of a request that is on its loop has no room for the way there.
        if (!client.loop.is_current()) [[unlikely]]
            co_return co_await send_on_loop(client, std::move(r), std::move(token));
        client_call call(client, r);
        co_await finish(call, std::move(token));
        co_return std::move(call.answer());
    }

    // Performs client::open().
    template <class Token>
    static task<client_answer> open(client_core& client, client_request r, Token token) {
        if (!client.loop.is_current()) [[unlikely]]
            co_return co_await open_on_loop(client, std::move(r), std::move(token));
        opened made = begin_open(client, std::move(r));
        client_call& call = call_of(*made);
        co_await finish(call, std::move(token));
        co_return client_answer(std::move(made), std::move(call.answer()));
    }

private:
    template <class Token>
    static task<client_response> send_on_loop(client_core& client, client_request r, Token token) {
        co_return co_await execution::starts_on(client.loop.get_scheduler(),
                                                send(client, std::move(r), std::move(token)));
    }
    template <class Token>
    static task<client_answer> open_on_loop(client_core& client, client_request r, Token token) {
        co_return co_await execution::starts_on(client.loop.get_scheduler(),
                                                open(client, std::move(r), std::move(token)));
    }

    // Performs the call until it has its answer. The token stops it too.
    template <class Token>
    static task<> finish(client_call& call, Token token) {
        bool answered = false;
        std::exception_ptr error;
        {
            const stop_callback_for_t<Token, client_call::on_stop> callback(
                token, client_call::on_stop(call));
            try {
                answered = co_await call.perform();
            } catch (...) {
                error = std::current_exception();
            }
        }
        co_await client_call::settled(call);
        if (!answered && (call.stopped() || !error)) co_await execution::just_stopped();
        if (error) std::rethrow_exception(error);
    }

    static opened begin_open(client_core& client, client_request&& r);
    static client_call& call_of(client_opened& made) noexcept;
};

}  // namespace coppice::http::internal
