# cmake -DPROGRAM=... -DEXPECTED=... -P: runs a program. Its output must equal the file exactly.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE said RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} ended with ${status}; it said:\n${said}")
endif()
file(READ ${EXPECTED} expected)
if(NOT said STREQUAL expected)
    message(FATAL_ERROR "expected (${EXPECTED}):\n${expected}\nsaid:\n${said}")
endif()
