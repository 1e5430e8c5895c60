# Rivals of the benchmarks that may not be installed.

# Adds oneTBB, and the sources that use it, to a benchmark, and defines BENCH_WITH_TBB there. Leaves
# them out, with a message, if oneTBB is not installed.
function(coppice_use_tbb target)
    find_package(TBB QUIET)
    if(NOT TBB_FOUND)
        message(STATUS "${target}: oneTBB (libtbb-dev) is not installed; that rival is left out")
        return()
    endif()
    target_sources(${target} PRIVATE ${ARGN})
    target_compile_definitions(${target} PRIVATE BENCH_WITH_TBB)
    target_link_libraries(${target} PRIVATE TBB::tbb)
endfunction()
