# What `cmake --install` and `cpack -G DEB` put where: the program, its models' profiles, a man page and
# completion made from the options, and a systemd unit.
include(GNUInstallDirs)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # the program alone, not the tests
install(TARGETS skein RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT skein)
install(DIRECTORY models/default models/minilm models/smollm2 models/smollm2-decide
        DESTINATION ${CMAKE_INSTALL_DATADIR}/skein/models COMPONENT skein)
install(FILES deploy/skein.service DESTINATION lib/systemd/system COMPONENT skein)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT skein)
install(CODE "execute_process(
  COMMAND python3 ${CMAKE_SOURCE_DIR}/tools/manual_files.py $<TARGET_FILE:skein> ${CMAKE_BINARY_DIR}/manual
  COMMAND_ERROR_IS_FATAL ANY)" COMPONENT skein)
install(FILES ${CMAKE_BINARY_DIR}/manual/skein.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        COMPONENT skein)
install(FILES ${CMAKE_BINARY_DIR}/manual/skein.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME skein
        COMPONENT skein)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME skein)
set(CPACK_PACKAGE_CONTACT "Skein's maintainers <skein@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Server for decisions, embeddings and chat of language models")
set(CPACK_COMPONENTS_ALL skein)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# `skein model fetch` gets models as Python packages.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-pip, ca-certificates")
set(CPACK_STRIP_FILES ON)
include(CPack)
