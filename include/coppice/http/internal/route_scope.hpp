// route_scope: a router or a group, as its routes see it.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/http/internal/filter_task.hpp>

#include <cstddef>
#include <string>

namespace coppice::http::internal {

// A router or a group, as its routes see it.
struct route_scope {
    std::string prefix;
    std::size_t parent;  // less than its own number; 0 for the router, which is number 0
    filter_chain chain;
};

}  // namespace coppice::http::internal
