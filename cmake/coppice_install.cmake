# What `cmake --install` installs: headers, the library, the package files, and the program
# (apps/serve installs itself). All paths are relative to the prefix, so a user may choose the
# prefix at install time and move it afterwards.
option(COPPICE_INSTALL "Install coppice with the project that contains it" ${PROJECT_IS_TOP_LEVEL})
if(NOT COPPICE_INSTALL)
    return()
endif()
include(CMakePackageConfigHelpers)
set(coppice_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/coppice)

# Installs a library, its headers, and the file that exports its target.
function(coppice_install_library library exported)
    install(TARGETS ${library} EXPORT ${exported}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILE_SET internal DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
    install(EXPORT ${exported} NAMESPACE coppice:: DESTINATION ${coppice_package_dir}
        COMPONENT development)
endfunction()
coppice_install_library(coppice coppiceTargets)
if(COPPICE_TLS)
    coppice_install_library(coppice_tls coppiceTlsTargets)
endif()
if(COPPICE_MPI)
    coppice_install_library(coppice_mpi coppiceMpiTargets)
endif()

if(COPPICE_HTTP2)
    coppice_install_library(coppice_http2 coppiceHttp2Targets)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/coppiceConfig.cmake.in coppiceConfig.cmake
    INSTALL_DESTINATION ${coppice_package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(coppiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/coppiceConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/coppiceConfigVersion.cmake
    DESTINATION ${coppice_package_dir} COMPONENT development)

# The .pc file finds its prefix relative to itself; absolute install directories stay absolute.
file(RELATIVE_PATH coppice_pc_to_prefix
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(coppice_pc_prefix "\${pcfiledir}/${coppice_pc_to_prefix}")
foreach(dir IN ITEMS INCLUDEDIR LIBDIR)
    string(TOLOWER coppice_pc_${dir} variable)
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
        set(${variable} "${CMAKE_INSTALL_${dir}}")
    else()
        set(${variable} "\${prefix}/${CMAKE_INSTALL_${dir}}")
    endif()
endforeach()
# A program that links the static library must also link its dependencies. The shared library names
# its own.
set(coppice_pc_zlib "")
if(COPPICE_HTTP AND NOT BUILD_SHARED_LIBS)
    set(coppice_pc_zlib " -lz")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/coppice.pc.in coppice.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/coppice.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
if(COPPICE_TLS)
    set(coppice_pc_openssl "")
    if(NOT BUILD_SHARED_LIBS)
        set(coppice_pc_openssl " -lssl -lcrypto")
    endif()
    configure_file(${CMAKE_CURRENT_LIST_DIR}/coppice_tls.pc.in coppice_tls.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/coppice_tls.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endif()
if(COPPICE_MPI)
    list(TRANSFORM MPI_CXX_INCLUDE_DIRS PREPEND " -I" OUTPUT_VARIABLE coppice_pc_mpi_flags)
    list(JOIN coppice_pc_mpi_flags "" coppice_pc_mpi_flags)
    list(JOIN MPI_CXX_LIBRARIES " " coppice_pc_mpi)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/coppice_mpi.pc.in coppice_mpi.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/coppice_mpi.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endif()
if(COPPICE_HTTP2)
    set(coppice_pc_nghttp2 "")
    if(NOT BUILD_SHARED_LIBS)
        set(coppice_pc_nghttp2 " -lnghttp2")
    endif()
    configure_file(${CMAKE_CURRENT_LIST_DIR}/coppice_http2.pc.in coppice_http2.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/coppice_http2.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endif()

# The script that makes gdb's output readable: `source` it, see docs/debugging.md.
install(FILES ${PROJECT_SOURCE_DIR}/packaging/gdb/coppice-gdb.py
    DESTINATION ${CMAKE_INSTALL_DATADIR}/coppice COMPONENT development)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT development)
