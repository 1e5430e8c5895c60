// The whole library in one include, for programs that use most of it.
#pragma once

#include <coppice/base.hpp>
#include <coppice/channel.hpp>
#include <coppice/contract.hpp>
#include <coppice/execution.hpp>
#include <coppice/generator.hpp>
#include <coppice/graph.hpp>
#include <coppice/io.hpp>
#include <coppice/parallel.hpp>
#include <coppice/pool.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>
#include <coppice/trace.hpp>
#include <coppice/version.hpp>

// The component tls: for programs that link it.
#if defined(COPPICE_WITH_TLS) && __has_include(<coppice/tls.hpp>)
#include <coppice/tls.hpp>
#endif

// The component mpi, likewise.
#if defined(COPPICE_WITH_MPI) && __has_include(<coppice/mpi.hpp>)
#include <coppice/mpi.hpp>
#endif

// A library that was built without http: CMake says so, and does not install its headers.
#if !defined(COPPICE_WITHOUT_HTTP) && __has_include(<coppice/http.hpp>)
#include <coppice/http.hpp>
#endif
// The component http2, likewise.
#if defined(COPPICE_WITH_HTTP2) && __has_include(<coppice/http2.hpp>)
#include <coppice/http2.hpp>
#endif
