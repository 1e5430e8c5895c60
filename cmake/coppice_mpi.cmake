# The component mpi: a library of its own, since it alone needs MPI. Users name it coppice::mpi.
# -DMPI_CXX_COMPILER=mpicxx.mpich chooses between implementations.
find_package(MPI REQUIRED)
# The macro by which <mpi.h> tells the implementation. A program must use the same one.
file(STRINGS "${MPI_CXX_HEADER_DIR}/mpi.h" coppice_mpi_macro LIMIT_COUNT 1
    REGEX "^#define (OPEN_MPI|MPICH_VERSION)[ \t]")
string(REGEX MATCH "OPEN_MPI|MPICH_VERSION" coppice_mpi_macro "${coppice_mpi_macro}")
# Fault tolerance (ULFM), which Open MPI has from 5.0 on.
set(coppice_mpi_recovers OFF)
if(EXISTS "${MPI_CXX_HEADER_DIR}/openmpi/mpiext/mpiext_ftmpi_c.h")
    set(coppice_mpi_recovers ON)
endif()
# What is found as mpiexec may be another implementation's, which would start as many jobs of one
# process each. The tests and bench_mpi are left out if there is no other.
if(MPIEXEC_EXECUTABLE)
    execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version
        OUTPUT_VARIABLE coppice_mpiexec_says ERROR_VARIABLE coppice_mpiexec_says)
    set(coppice_mpiexec "${coppice_mpi_macro} ${coppice_mpiexec_says}")
    if(coppice_mpiexec MATCHES "^MPICH_VERSION .*(Open MPI|OpenRTE)")
        find_program(COPPICE_MPIEXEC mpiexec.mpich)
        set(MPIEXEC_EXECUTABLE ${COPPICE_MPIEXEC})
    elseif(coppice_mpiexec MATCHES "^OPEN_MPI .*HYDRA")
        find_program(COPPICE_MPIEXEC mpiexec.openmpi)
        set(MPIEXEC_EXECUTABLE ${COPPICE_MPIEXEC})
    endif()
    mark_as_advanced(COPPICE_MPIEXEC)
endif()
file(GLOB coppice_mpi_sources CONFIGURE_DEPENDS src/mpi/*.cpp)
file(GLOB coppice_mpi_headers CONFIGURE_DEPENDS include/coppice/mpi/*.hpp)
file(GLOB coppice_mpi_internal_headers CONFIGURE_DEPENDS include/coppice/mpi/internal/*.hpp)
add_library(coppice_mpi ${coppice_mpi_sources})
add_library(coppice::mpi ALIAS coppice_mpi)
target_link_libraries(coppice_mpi PUBLIC coppice::coppice MPI::MPI_CXX)
# The C++ bindings, which the standard has removed, are another library.
target_compile_definitions(coppice_mpi PUBLIC OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
# <coppice/coppice.hpp> includes <coppice/mpi.hpp> then.
target_compile_definitions(coppice_mpi INTERFACE COPPICE_WITH_MPI)
target_sources(coppice_mpi PUBLIC
    FILE_SET HEADERS BASE_DIRS include FILES include/coppice/mpi.hpp ${coppice_mpi_headers}
    FILE_SET internal TYPE HEADERS BASE_DIRS include FILES ${coppice_mpi_internal_headers})
set_target_properties(coppice_mpi PROPERTIES EXPORT_NAME mpi VERIFY_INTERFACE_HEADER_SETS ON
    INTERFACE_HEADER_SETS_TO_VERIFY HEADERS
    UNITY_BUILD ${COPPICE_UNITY} UNITY_BUILD_BATCH_SIZE 10)
coppice_flags(coppice_mpi)
if(BUILD_SHARED_LIBS)
    target_link_options(coppice_mpi PRIVATE -Wl,--version-script=${coppice_map})
    set_target_properties(coppice_mpi PROPERTIES DEFINE_SYMBOL "" VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${coppice_map})
endif()
