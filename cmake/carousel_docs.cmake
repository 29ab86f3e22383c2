# The target `docs`, where Doxygen is found: the reference of the headers that are installed, in docs/html of
# the build folder. No part of `all`. A warning is an error.
set(docs_folder ${PROJECT_BINARY_DIR}/docs)
configure_file(${CMAKE_CURRENT_LIST_DIR}/Doxyfile.in ${docs_folder}/Doxyfile @ONLY)
find_program(CAROUSEL_DOXYGEN doxygen)
if(CAROUSEL_DOXYGEN)
  add_custom_target(docs
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DTO=include
            -P ${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake
    COMMAND ${CAROUSEL_DOXYGEN} Doxyfile
    WORKING_DIRECTORY ${docs_folder} COMMENT "API reference: ${docs_folder}/html/index.html" VERBATIM)
endif()
