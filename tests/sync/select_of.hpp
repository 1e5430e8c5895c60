// A select that a test starts, stops, and asks how it ended.
#pragma once

#include <coppice/execution.hpp>
#include <coppice/sync/select.hpp>

#include "channel_operation.hpp"

#include <utility>
#include <variant>

namespace coppice::test {

// Starts a select of channels of ints that send or receive.
template <class... Ops>
auto select_of(Ops... ops) {
    return operation_of<std::variant<
        typename internal::select_operand<Ops>::template results<execution::env<>>::result...>>(
        coppice::select(std::move(ops)...));
}

}  // namespace coppice::test
