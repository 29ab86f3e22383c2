# Compile options of every target. Floating point has one specified meaning on the CPU and the GPU: nothing is contracted or
# reordered (images are bit-identical), so these flags are part of the semantics, not of the tuning.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
find_program(CAROUSEL_CCACHE ccache)
if(CAROUSEL_CCACHE)
  # Without these settings ccache does not cache a file that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,locale ${CAROUSEL_CCACHE})
  if(CAROUSEL_WITH_CUDA)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CAROUSEL_CCACHE})
  endif()
endif()
# The Python module links the same libraries as the programs, so all code is position-independent. No program interposes a function
# of ours: calls within a library stay direct.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fPIC> $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC,-fno-semantic-interposition>)

# The sources of a target are compiled together, up to forty at a time: their includes are instantiated and emitted once, which takes
# a third of the time. A file must still include what it uses: the debug preset compiles each file by itself. Only that preset uses
# -Wshadow, which would see other files' names here.
option(CAROUSEL_UNITY "Compile the sources of a target together" ON)
if(CAROUSEL_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 40)
  set(CAROUSEL_SHADOW -Wno-shadow)
else()
  set(CAROUSEL_SHADOW -Wshadow)
endif()
# carousel_compile_alone(TARGET SOURCE...): compiles files separately whose internal names clash with those of other files.
function(carousel_compile_alone target)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

option(CAROUSEL_STATIC_LIBSTDCXX "Link the C++ runtime statically (binaries that travel)" OFF)

if(CAROUSEL_SANITIZE)
  # For all targets or none: a sanitised library does not link into an unsanitised program.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CAROUSEL_SANITIZE}>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  if(CAROUSEL_SANITIZE MATCHES "undefined")
    # These checks take a third of the compile time, and the address sanitizer finds the same: use of a null pointer, out-of-bounds access.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,vptr,object-size>)
  endif()
  add_link_options(-fsanitize=${CAROUSEL_SANITIZE})
  add_compile_definitions(CAROUSEL_SANITIZED)   # for tests, which use fewer seeds then
endif()

# Headers of libraries that nearly every file includes are parsed once for all targets. A file must still include what it uses: the
# tsan preset builds without precompiled headers. Our own headers are not among them: ccache may restore a precompiled header that was
# made of a file with another time, and the compiler then no longer recognises its `#pragma once`. The JSON library is precompiled only
# for the kinds with json, because loading it costs a small file more than it saves.
option(CAROUSEL_PRECOMPILE "Parse the headers that most files share only once" ON)
set(CAROUSEL_PRECOMPILED <algorithm> <array> <atomic> <chrono> <cstring> <filesystem> <functional> <map> <memory> <optional> <span>
  <string> <string_view> <vector> <fmt/format.h>)

# carousel_precompile(TARGET KIND OPTION...): TARGET uses the header that carousel_precompiled_KIND compiles with OPTION.... TARGET
# must link fmt; KIND `none`, for targets that do not link it: no precompiled header.
function(carousel_precompile target kind)
  get_target_property(type ${target} TYPE)
  if(NOT CAROUSEL_PRECOMPILE OR kind STREQUAL "none" OR type MATCHES "SHARED|MODULE")   # a module's own macro would make it a different header
    return()
  endif()
  if(CAROUSEL_UNITY AND kind MATCHES "^json")   # with unity builds the files are few and large: parsing is faster than loading
    return()
  endif()
  set(shared carousel_precompiled_${kind})
  if(NOT TARGET ${shared})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "// Empty: the target's precompiled header is what others use.\n")
    add_library(${shared} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
    target_link_libraries(${shared} PRIVATE ${CAROUSEL_FMT})
    target_compile_options(${shared} PRIVATE -ffp-contract=off ${ARGN})
    set(headers ${CAROUSEL_PRECOMPILED})
    if(kind MATCHES "json")
      find_package(nlohmann_json REQUIRED)   # its targets are visible only in this folder and its subfolders
      target_link_libraries(${shared} PRIVATE nlohmann_json::nlohmann_json)
      list(APPEND headers <nlohmann/json.hpp>)
    endif()
    if(kind MATCHES "^tests")   # a sixth of a test file's compile time
      target_link_libraries(${shared} PRIVATE Catch2::Catch2)
      if(Catch2_VERSION VERSION_LESS 3)   # as tests/support/catch.hpp
        list(APPEND headers <catch2/catch.hpp>)
      else()
        list(APPEND headers <catch2/catch_all.hpp>)
      endif()
      list(APPEND headers <cstdio>)
    endif()
    if(kind MATCHES "cli")
      find_package(CLI11 REQUIRED)
      target_link_libraries(${shared} PRIVATE CLI11::CLI11)
      list(APPEND headers <CLI/CLI.hpp>)
    endif()
    target_precompile_headers(${shared} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${shared})
endfunction()

# carousel_target_options(TARGET [KIND OPTION...]): the shared options, then OPTION...; KIND: see carousel_precompile, default `plain`.
function(carousel_target_options target)
  set(more ${ARGN})
  set(kind plain)
  if(more)
    list(POP_FRONT more kind)
  endif()
  if(CAROUSEL_SANITIZE)   # what hardly computes: it compiles in half the time
    list(TRANSFORM more REPLACE "^-O1$" "-O0")
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${more}>")
  carousel_precompile(${target} ${kind} ${more})
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra ${CAROUSEL_SHADOW} -Wno-unused-parameter -ffp-contract=off>
    $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -prec-div=true -prec-sqrt=true -ftz=false --expt-relaxed-constexpr
      -Xcompiler=-Wall,-Wextra,-ffp-contract=off>)
  if(CAROUSEL_WERROR)
    # g++ 12 and 13 give false positives of these three warnings in inlined code of the standard library and of fmt.
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Werror -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=restrict>
      $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  endif()
  if(CAROUSEL_SEEDED_BUG)
    string(TOUPPER "CAROUSEL_BUG_${CAROUSEL_SEEDED_BUG}" bug)
    target_compile_definitions(${target} PRIVATE ${bug}=1)
  endif()
  if(CAROUSEL_STATIC_LIBSTDCXX)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
