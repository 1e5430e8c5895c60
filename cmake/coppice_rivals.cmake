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

# coppice_use_openmp(target SOURCES file... [OBJECTS library]): builds the sources as a program for
# each of OpenMP's runtimes, by the runtime's own compiler, and defines BENCH_LIBOMP and
# BENCH_LIBGOMP, their paths, in the benchmark. Links the object library into them. Leaves out, with
# a message, what is not installed.
function(coppice_use_openmp target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "OBJECTS" "SOURCES")
    list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    file(GLOB headers CONFIGURE_DEPENDS *.hpp ../*.hpp)
    coppice_use_openmp_runtime(libomp clang++-19 libomp-19-dev)
    coppice_use_openmp_runtime(libgomp g++-12 libgomp1)
endfunction()

# The part of coppice_use_openmp for one runtime; uses its variables.
macro(coppice_use_openmp_runtime runtime compiler package)
    find_program(compiler_of_${runtime} ${compiler})
    set(program ${CMAKE_CURRENT_BINARY_DIR}/${target}_${runtime})
    set(flags -std=c++20 -O3 -fopenmp -falign-functions=64)
    if(compiler_of_${runtime})
        file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/try_openmp.cpp "int main() { return 0; }\n")
        execute_process(
            COMMAND ${compiler_of_${runtime}} ${flags} try_openmp.cpp -o try_openmp
            WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
            RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    endif()
    if(NOT compiler_of_${runtime} OR failed)
        message(STATUS
            "${target}: ${compiler} with ${package} is not installed; ${runtime} is left out")
    else()
        set(objects "")
        if(arg_OBJECTS)
            set(objects $<TARGET_OBJECTS:${arg_OBJECTS}>)
        endif()
        add_custom_command(OUTPUT ${program}
            COMMAND ${compiler_of_${runtime}} ${flags} ${arg_SOURCES} ${objects} -o ${program}
            DEPENDS ${arg_SOURCES} ${headers} ${arg_OBJECTS} ${objects}
            COMMAND_EXPAND_LISTS)
        add_custom_target(${target}_with_${runtime} DEPENDS ${program})
        add_dependencies(${target} ${target}_with_${runtime})
        string(TOUPPER ${runtime} name)
        target_compile_definitions(${target} PRIVATE BENCH_${name}="${program}")
    endif()
endmacro()
