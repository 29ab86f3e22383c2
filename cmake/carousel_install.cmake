# `cmake --install` and find_package(carousel): the programs, the pipeline files, the libraries carousel::stage and
# carousel::testing with their dependencies, and the headers that a user's stage includes. Exported are all static libraries under
# shared/ except carousel_picture, which packs pictures, and the kernels, for a sink's hash; the shipped stages' classes are not.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/carousel)
set(share_folder ${CMAKE_INSTALL_DATADIR}/carousel)

# --- libraries -----------------------------------------------------------------------------------------------------------------
carousel_targets_below(${PROJECT_SOURCE_DIR}/shared STATIC_LIBRARY CAROUSEL_LIBRARIES)
list(REMOVE_ITEM CAROUSEL_LIBRARIES carousel_picture)
list(APPEND CAROUSEL_LIBRARIES carousel_kernels carousel_stage carousel_testing)
add_dependencies(programs ${CAROUSEL_LIBRARIES})   # so that an installation after building it is complete
set(dependencies)
foreach(library IN LISTS CAROUSEL_LIBRARIES)
  string(REGEX REPLACE "^carousel_" "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})   # carousel_stage is carousel::stage in other projects
  if(NOT TARGET carousel::${name})
    add_library(carousel::${name} ALIAS ${library})                  # ... and in this one
  endif()
  # Each external target in a link interface comes from a package of the same name, which the user's project must find, too.
  get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
  string(REGEX REPLACE "\\$<BUILD_INTERFACE:[^>]*>" "" links "${links}")
  string(REGEX MATCHALL "[A-Za-z0-9_]+::" packages "${links}")
  list(APPEND dependencies ${packages})
endforeach()
list(TRANSFORM dependencies REPLACE "::$" "")
list(REMOVE_ITEM dependencies carousel CUDA CUDAToolkit)
if(CAROUSEL_WITH_CUDA)
  # A CPU stage links the CUDA runtime through the library, although its project needs no toolkit: install the runtime, too.
  find_package(CUDAToolkit REQUIRED)
  get_target_property(runtime CUDA::cudart_static IMPORTED_LOCATION)
  install(FILES ${runtime} DESTINATION ${CMAKE_INSTALL_LIBDIR}/carousel RENAME libcudart_static.a)
endif()
list(REMOVE_DUPLICATES dependencies)
set(CAROUSEL_FIND_DEPENDENCIES "")
foreach(package IN LISTS dependencies)
  string(APPEND CAROUSEL_FIND_DEPENDENCIES "find_dependency(${package})\n")
endforeach()

install(TARGETS ${CAROUSEL_LIBRARIES} EXPORT carousel_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET carousel_space)   # <carousel/space.h>: a shared library, for every language that can call C
  add_dependencies(programs carousel_space)
  set_target_properties(carousel_space PROPERTIES EXPORT_NAME space)
  add_library(carousel::space ALIAS carousel_space)
  install(TARGETS carousel_space EXPORT carousel_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # Relative to its own folder: an installation may be moved, and a package is made in another folder than its final one.
  string(REGEX REPLACE "[^/]+" ".." up ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  configure_file(shared/ipc/c/carousel-space.pc.in ${PROJECT_BINARY_DIR}/carousel-space.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/carousel-space.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
install(EXPORT carousel_targets FILE carousel-targets.cmake NAMESPACE carousel:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/carousel-config.cmake.in ${PROJECT_BINARY_DIR}/carousel-config.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_LIBDIR share_folder)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/carousel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/carousel-config.cmake ${PROJECT_BINARY_DIR}/carousel-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/carousel_add_stage.cmake DESTINATION ${package_folder})

# --- headers: the public ones, and what they need, in carousel/detail/ ------------------------------------------------------------
set(core_only ON)
set(pipelines_of_extras PATTERN "video.toml" EXCLUDE)   # its stage in Python is an example, which is not installed
if(CAROUSEL_EXTRAS)
  set(core_only OFF)
else()
  list(APPEND pipelines_of_extras PATTERN "inference.toml" EXCLUDE PATTERN "*.net" EXCLUDE)
endif()
install(CODE "set(SOURCE \"${PROJECT_SOURCE_DIR}\")
  set(CORE_ONLY ${core_only})
  set(TO \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")
  include(\"${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake\")")

# --- programs (all in one folder: `carousel` finds the stages in its own) and pipeline files ----------------------------------
if(CAROUSEL_PROGRAMS)
  install(TARGETS ${CAROUSEL_PROGRAMS} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# Its subfolders contain only sources: without EXCLUDE, they would be installed empty.
install(DIRECTORY pipelines/ DESTINATION ${share_folder}/pipelines FILES_MATCHING PATTERN "*.toml" PATTERN "*.net" REGEX "/pipelines/[^/.]+$" EXCLUDE
  ${pipelines_of_extras})

# --- the unit template, with the folder of the programs, and example manifests -----------------------------------------------------
install(CODE "set(bin \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  configure_file(\"${PROJECT_SOURCE_DIR}/pipelines/deploy/carousel@.service.in\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/carousel@.service\" @ONLY)")
install(FILES pipelines/deploy/deployment.yaml pipelines/deploy/monitoring.yaml pipelines/deploy/pod.yaml DESTINATION ${share_folder}/deploy)
install(FILES pipelines/monitoring/grafana.json pipelines/monitoring/alerts.yaml DESTINATION ${share_folder}/monitoring)
