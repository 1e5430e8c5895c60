# Functions that give the project's own targets their flags, and tests their names.

# Warnings and sanitizers, for targets built from this tree.
function(coppice_flags target)
    # COPPICE_CHECK names files from the project's root, whoever built it and wherever.
    target_compile_options(${target} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
    if(COPPICE_WARNINGS)
        target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
            -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            # GCC 12 reports these for correct code once coroutines or optional are inlined.
            target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-array-bounds
                -Wno-stringop-overflow -Wno-dangling-pointer -Wno-mismatched-new-delete
                -Wno-restrict -Wno-use-after-free)
            # GoogleTest's macros close their own else; GCC warns of them nevertheless.
            target_compile_options(${target} PRIVATE -Wno-dangling-else)
            # ThreadSanitizer does not know fences; fenced protocols have models instead.
            target_compile_options(${target} PRIVATE -Wno-tsan)
        endif()
    endif()
    if(COPPICE_SANITIZE)
        # Public: whoever links an instrumented library links the runtime too.
        target_compile_options(${target} PUBLIC -fsanitize=${COPPICE_SANITIZE}
            -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
        target_link_options(${target} PUBLIC -fsanitize=${COPPICE_SANITIZE})
    endif()
endfunction()

# An executable linked with the library.
function(coppice_executable target)
    add_executable(${target} ${ARGN})
    target_link_libraries(${target} PRIVATE coppice::coppice)
    coppice_flags(${target})
endfunction()
