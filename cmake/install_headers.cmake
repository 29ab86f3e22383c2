# Installs the public headers and, in carousel/detail/, the headers of this tree that they include. Run by
# `cmake --install`, so that a changed header is found without configuring again. Variables: SOURCE (the
# tree), TO (the include folder of the prefix), CORE_ONLY (optional: without the headers of extras).
#
# A header of the tree contains #include "frame/frame_format.hpp", relative to one of the roots below; the
# installed one contains #include <carousel/detail/frame/frame_format.hpp>, so that one include folder is
# enough and no name clashes with other projects. Public headers such as <carousel/stage.hpp> have the
# same form in the tree.
cmake_policy(VERSION 3.25)
set(public_folder stages/sdk/carousel)
set(roots . shared stages/sdk)
set(waiting)
foreach(name stage cpu cuda hash port testing)
  list(APPEND waiting ${public_folder}/${name}.hpp)
endforeach()
if(NOT CORE_ONLY)
  list(APPEND waiting shared/ipc/carousel/ipc.hpp shared/ipc/cuda/carousel/ipc_cuda.cuh shared/ipc/c/carousel/space.h)   # for programs that are not stages
endif()

# The path of an installed header, relative to TO.
function(carousel_installed_name header result)
  if(header MATCHES "^(${public_folder}|shared/ipc/carousel|shared/ipc/c/carousel|shared/ipc/cuda/carousel)/(.*)$")
    set(${result} carousel/${CMAKE_MATCH_2} PARENT_SCOPE)
  else()
    string(REGEX REPLACE "^shared/" "" below ${header})
    set(${result} carousel/detail/${below} PARENT_SCOPE)
  endif()
endfunction()

# The header that `header` includes as `text`.
function(carousel_included_header header text result)
  get_filename_component(folder ${header} DIRECTORY)
  foreach(root IN LISTS roots ITEMS ${folder})
    if(EXISTS ${SOURCE}/${root}/${text})
      cmake_path(SET found NORMALIZE ${root}/${text})
      set(${result} ${found} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "${header} includes \"${text}\", which is neither beside it nor below shared/ or the "
                      "project's root: it can't be installed")
endfunction()

# Written only if changed: reinstalling over an older version does not recompile unchanged parts of the
# projects that use it.
function(carousel_write_header text file)
  set(old "")
  if(EXISTS ${file})
    file(READ ${file} old)
  endif()
  if(old STREQUAL text)
    message(STATUS "Up-to-date: ${file}")
    return()
  endif()
  file(WRITE ${file} "${text}")
  file(CHMOD ${file} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  message(STATUS "Installing: ${file}")
endfunction()

set(seen)
while(waiting)
  list(POP_FRONT waiting header)
  if(header IN_LIST seen)
    continue()
  endif()
  list(APPEND seen ${header})
  file(READ ${SOURCE}/${header} text)
  string(REGEX MATCHALL "\n#include \"[^\"\n]+\"" lines "${text}")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*\"(.*)\"" "\\1" name "${line}")
    carousel_included_header(${header} ${name} included)
    list(APPEND waiting ${included})
    carousel_installed_name(${included} installed)
    string(REPLACE "\n#include \"${name}\"" "\n#include <${installed}>" text "${text}")
  endforeach()
  carousel_installed_name(${header} installed)
  carousel_write_header("${text}" ${TO}/${installed})
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${TO}/${installed})
endwhile()
