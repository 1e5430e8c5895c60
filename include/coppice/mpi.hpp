// MPI: messages and collectives between processes, as operations. An optional component.
#pragma once

#include <coppice/mpi/bulk.hpp>
#include <coppice/mpi/call.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/objects.hpp>
#include <coppice/mpi/partition.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/mpi/serializer.hpp>
#include <coppice/mpi/sort.hpp>
#include <coppice/mpi/stop_source.hpp>
#include <coppice/mpi/varying.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/mpi/work_sharing.hpp>
