# The functions that build a stage, in this tree and, through find_package(carousel), in any other project.
#
# carousel_add_stage(NAME SOURCE... [LIBS LIBRARY...]): the program of one stage. NAME is the value of `run`
# in a pipeline file; the sources define main() as carousel::stage_main<your_class>(argc, argv).
# carousel_add_stage_test(NAME SOURCE... [LIBS LIBRARY...]): a program that tests stages with
# <carousel/testing.hpp>, and its ctest. It exits with 0 on success, with 77 if it cannot run here (no GPU),
# with any other code on failure. Call after enable_testing().
#
# Sources may be .cu files if the project has enabled CUDA.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # nvcc supports C++20 from 12.0 on; CMake 3.25 (Debian 12) does not know that.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

# Internal: the options of both functions.
function(carousel_stage_options name)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON)
  # Pictures must be bit-identical on every machine: no contraction into fused operations.
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
  if(COMMAND carousel_target_options)
    carousel_target_options(${name})
  endif()
endfunction()

function(carousel_add_stage name)
  cmake_parse_arguments(S "" "" "LIBS" ${ARGN})
  add_executable(${name} ${S_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE carousel::stage ${S_LIBS})
  carousel_stage_options(${name})
endfunction()

function(carousel_add_stage_test name)
  cmake_parse_arguments(S "" "" "LIBS" ${ARGN})
  add_executable(${name} ${S_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE carousel::testing ${S_LIBS})
  carousel_stage_options(${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
