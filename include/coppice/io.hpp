// Umbrella of room io/: loops, sockets, timers and signals.
#pragma once

#include <coppice/io/authority.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/context_pool.hpp>
#include <coppice/io/copy.hpp>
#include <coppice/io/datagram.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/file.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/open_file.hpp>
#include <coppice/io/option.hpp>
#include <coppice/io/resolver.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/secure_engine.hpp>
#include <coppice/io/service_manager.hpp>
#include <coppice/io/signal_set.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/stream.hpp>
#include <coppice/io/tcp.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/io/whole_file.hpp>
