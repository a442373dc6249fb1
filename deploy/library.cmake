# What `cmake --install` puts where for programs that have a model in their own process: the headers,
# the static libraries, a CMake package and a pkg-config file (docs/library.md).
include(CMakePackageConfigHelpers)
set(libraries skein_base skein_json skein_text skein_io skein_grammar skein_kernels skein_model skein_kv
              skein_sched skein_engine skein_runtime skein_cuda skein_server skein_host xgrammar)
set_target_properties(xgrammar PROPERTIES OUTPUT_NAME skein_xgrammar EXPORT_NAME skein_xgrammar)

add_library(skein_library INTERFACE)
set_target_properties(skein_library PROPERTIES EXPORT_NAME skein)
target_link_libraries(skein_library INTERFACE skein_host)
target_include_directories(skein_library INTERFACE $<INSTALL_INTERFACE:include>)
target_compile_features(skein_library INTERFACE cxx_std_20)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/skein)
install(TARGETS skein_library ${libraries} EXPORT skein
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(EXPORT skein NAMESPACE skein:: FILE skein-targets.cmake DESTINATION ${package}
        COMPONENT library)
install(DIRECTORY include/skein DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/skein-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES deploy/skein-config.cmake ${CMAKE_BINARY_DIR}/skein-config-version.cmake
        DESTINATION ${package} COMPONENT library)

# Static libraries need each other in circles, and what they use needs its own libraries.
set(SKEIN_PC_LIBS "-Wl,--start-group")
foreach(library ${libraries})
  string(REGEX REPLACE "^xgrammar$" "skein_xgrammar" name ${library})
  string(APPEND SKEIN_PC_LIBS " -l${name}")
endforeach()
string(APPEND SKEIN_PC_LIBS " -Wl,--end-group")
file(RELATIVE_PATH SKEIN_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(deploy/skein.pc.in ${CMAKE_BINARY_DIR}/skein.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/skein.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT library)
