// What an environment does before and after MPI's own start and end: on_survivors.sh runs each case
// as a job of its own, in which all processes survive.
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include <mpi.h>
#include <string>
#include <system_error>

namespace {

namespace mpi = coppice::mpi;
using coppice::block;

void start_mpi() {
    int level = 0;
    ASSERT_EQ(::MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), MPI_SUCCESS);
    ASSERT_EQ(level, MPI_THREAD_MULTIPLE);
}

void expect_that_mpi_has_ended() {
    try {
        const mpi::environment environment;
        ADD_FAILURE() << "MPI has started again";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_not_permitted);
        EXPECT_NE(std::string(e.what()).find("MPI has ended"), std::string::npos) << e.what();
    }
}

MPI_Errhandler handler_of(MPI_Comm over) {
    MPI_Errhandler found = MPI_ERRHANDLER_NULL;
    ::MPI_Comm_get_errhandler(over, &found);
    return found;
}

TEST(mpi_all_survive, an_environment_after_another_is_an_error) {
    {
        const mpi::environment environment;
        mpi::barrier(environment.world(), block);
    }
    expect_that_mpi_has_ended();
}

TEST(mpi_all_survive, an_environment_after_the_program_has_ended_mpi_is_an_error) {
    start_mpi();
    ::MPI_Finalize();
    expect_that_mpi_has_ended();
}

TEST(mpi_all_survive, environments_over_the_programs_mpi_restore_its_error_handlers) {
    start_mpi();
    ::MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    ::MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int n = 0; n != 3; ++n) {
        {
            const mpi::environment environment;
            mpi::barrier(environment.world(), block);
            EXPECT_EQ(handler_of(MPI_COMM_WORLD), MPI_ERRORS_RETURN);
        }
        EXPECT_EQ(handler_of(MPI_COMM_WORLD), MPI_ERRORS_ARE_FATAL);
        EXPECT_EQ(handler_of(MPI_COMM_SELF), MPI_ERRORS_RETURN);
    }
    ::MPI_Finalize();
}

}  // namespace
