// The whole library in one include, for programs that use most of it.
#pragma once

#include <coppice/contract.hpp>
#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/pool.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>
#include <coppice/version.hpp>

#if __has_include(<coppice/http.hpp>)  // a library that was built without zlib has no http
#include <coppice/http.hpp>
#endif
