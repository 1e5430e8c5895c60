# What `cmake --install` leaves: headers, the static library, the package files and the program.
include(CMakePackageConfigHelpers)

install(TARGETS coppice EXPORT coppiceTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT coppiceTargets NAMESPACE coppice::
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/coppice)
configure_package_config_file(cmake/coppiceConfig.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/coppiceConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/coppice)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/coppiceConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/coppiceConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/coppiceConfigVersion.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/coppice)

# Absolute install directories stay as they are; relative ones follow the prefix of the .pc file.
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(coppice_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
    set(coppice_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(coppice_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
    set(coppice_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
configure_file(cmake/coppice.pc.in ${CMAKE_CURRENT_BINARY_DIR}/coppice.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/coppice.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
