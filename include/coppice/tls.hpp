// TLS: contexts, the engine without a network, and a stream over sockets. An optional component.
#pragma once

#include <coppice/tls/context.hpp>
#include <coppice/tls/engine.hpp>
#include <coppice/tls/error.hpp>
#include <coppice/tls/stream.hpp>
