# Functions that set the flags of the project's own targets, and report what is left out.

# Warnings and sanitizers, for targets built from this tree.
function(coppice_flags target)
    # COPPICE_CHECK names files relative to the project's root, on every machine.
    target_compile_options(${target} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
    if(COPPICE_WARNINGS)
        target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
            -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            # GCC 12 reports these for correct code once coroutines or optional are inlined.
            target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-array-bounds
                -Wno-stringop-overflow -Wno-dangling-pointer -Wno-mismatched-new-delete
                -Wno-restrict -Wno-use-after-free)
            # GCC warns of a dangling else in GoogleTest's macros, which is not there.
            target_compile_options(${target} PRIVATE -Wno-dangling-else)
            # ThreadSanitizer does not know fences; fenced protocols have models instead.
            target_compile_options(${target} PRIVATE -Wno-tsan)
        endif()
    endif()
    if(COPPICE_SANITIZE)
        # Public: a program that links an instrumented library links the runtime too.
        target_compile_options(${target} PUBLIC -fsanitize=${COPPICE_SANITIZE}
            -fno-sanitize-recover=all -fno-omit-frame-pointer)
        # Reports have line numbers in the library only. In the programs that link it, they would
        # take a quarter of the build time; -DCMAKE_CXX_FLAGS=-g1 adds them.
        get_target_property(type ${target} TYPE)
        if(type MATCHES "_LIBRARY$" AND NOT target STREQUAL "coppice_test_support")
            target_compile_options(${target} PRIVATE -g1)
        endif()
        target_link_options(${target} PUBLIC -fsanitize=${COPPICE_SANITIZE})
    endif()
endfunction()

# Compiles a source with -O1 in a build without optimization: its promises depend on optimization.
function(coppice_optimize source)
    if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR CMAKE_CXX_FLAGS_RELEASE MATCHES "-O0")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -O1
            SKIP_PRECOMPILE_HEADERS ON)  # the header was compiled with other flags
    endif()
endfunction()

# Adds an executable linked with the library.
function(coppice_executable target)
    add_executable(${target} ${ARGN})
    target_link_libraries(${target} PRIVATE coppice::coppice)
    coppice_flags(${target})
endfunction()

# Finds the package that a part needs. If it is missing, turns the part off with a message where the
# part is AUTO, and otherwise notes the package for coppice_refuse_missing().
function(coppice_needs part package debian what)
    if(NOT ${part})
        return()
    endif()
    find_package(${package} QUIET)
    if(${package}_FOUND)
        return()
    endif()
    if(${part} STREQUAL "AUTO")
        message(STATUS "${what} are left out: ${package} (${debian}) is not installed")
        set(${part} OFF PARENT_SCOPE)
    else()
        set_property(GLOBAL APPEND PROPERTY coppice_missing "${debian} (${package}) for ${what}")
    endif()
endfunction()

# Ends the configuration with a list of the packages that coppice_needs() has noted, if any.
function(coppice_refuse_missing)
    get_property(missing GLOBAL PROPERTY coppice_missing)
    if(missing)
        list(JOIN missing "\n  " lines)
        message(FATAL_ERROR "These packages are not installed:\n  ${lines}\n"
            "Install them, or turn off what needs them: -DCOPPICE_APPS=OFF, -DCOPPICE_TESTS=OFF")
    endif()
endfunction()
