# The target `docs`, if Doxygen is found: the reference of the installed headers, in docs/html of the build
# folder. Not part of `all`. Warnings are errors.
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
