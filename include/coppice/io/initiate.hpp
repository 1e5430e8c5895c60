// initiate: makes an operation of a loop from a request and any completion token.
#pragma once
// A request is one kind of operation. Request::arguments is a small value. A Request is constructed
// from it when the operation starts, and stays where it is until the operation has ended:
//
//   bool begin(inplace_stop_token, time_point deadline) noexcept
//                             any thread; true: it has ended, completed() will not be called. Ends
//                             at once only on the loop, where its waiter expects the completion
//   virtual void completed() noexcept            otherwise, once, on the loop
//   std::error_code error(); value_type take()   afterwards: the outcome
//   bool stopped()                               it ended because of a stop or its deadline
//   context& owner()                             the loop that completes it; may be protected
//   arguments::owner, ::file.owner or ::target->owner()    the same loop, before construction
//   static constexpr const char* name            for messages
//   std::string subject()                        optional: the operand, asked for on a failure
//
// A program derives a request of its own from basic_request or descriptor_request, which observe
// stop tokens and deadlines. apps/notes/postgres_store.cpp has one of each, and
// internal/request.hpp describes the functions that they call and override.

#include <coppice/io/context.hpp>
#include <coppice/io/internal/request.hpp>
#include <coppice/io/internal/request_initiation.hpp>
#include <coppice/token/transform.hpp>

namespace coppice::io {

// basic_request<operation> is an operation that belongs to a loop and that the program's own code
// completes.
using internal::basic_request;
// descriptor_request<> is one ring operation, named by its opcode, on a file that a loop has
// adopted. A descriptor_reference says which file, as it was when the request was made.
using internal::descriptor_reference;
using internal::descriptor_request;
using internal::opcode;

// Starts the request in the way of the completion token, and returns what the token returns.
// Threads: any. Blocks, errors, and cost are those of the token.
template <class Request, class Token>
auto initiate(const typename Request::arguments& arguments,
              Token&& token) noexcept(nothrow_token<Token>) {
    using results = internal::request_results<typename Request::value_type>;
    return completion_token_transform<typename results::signature_type>(
        static_cast<Token&&>(token), internal::request_initiation<Request>(arguments));
}

}  // namespace coppice::io
