# The target `programs`: every program that a user runs, without the tests. A program is an executable that a folder outside tests/
# adds; nobody has to list it a second time, neither here nor for the installation. The target `pipeline_programs`: those of them
# that a pipeline and its viewers need. ./pipelines/launch builds these, so that a first launch doesn't wait for benchmarks and
# lessons.

# Targets of one type that `folder` and the folders below it have added.
function(carousel_targets_below folder type result)
  set(found)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(its_type ${target} TYPE)
    if(its_type STREQUAL type)
      list(APPEND found ${target})
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(sub IN LISTS folders)
    carousel_targets_below(${sub} ${type} more)
    list(APPEND found ${more})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(CAROUSEL_PROGRAMS)
foreach(folder shared kernels stages pipelines viewer)
  carousel_targets_below(${PROJECT_SOURCE_DIR}/${folder} EXECUTABLE found)
  list(APPEND CAROUSEL_PROGRAMS ${found})
endforeach()
add_custom_target(programs)
add_custom_target(pipeline_programs)
if(CAROUSEL_PROGRAMS)
  add_dependencies(programs ${CAROUSEL_PROGRAMS})
  set(needed ${CAROUSEL_PROGRAMS})
  list(FILTER needed EXCLUDE REGEX "^carousel-(bench|lab|train)")
  add_dependencies(pipeline_programs ${needed})
endif()
