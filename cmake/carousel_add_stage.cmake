# carousel_add_stage(NAME SOURCE... [LIBS LIBRARY...]): the program of one stage, in this tree and, through
# find_package(carousel), in anybody's. NAME is what a pipeline file's `run` says; the sources define main() by
# carousel::stages::stage_main<your_class>(argc, argv). Sources may be .cu files where the project has enabled CUDA.
function(carousel_add_stage name)
  cmake_parse_arguments(S "" "" "LIBS" ${ARGN})
  add_executable(${name} ${S_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE carousel::stage ${S_LIBS})
  target_compile_features(${name} PRIVATE cxx_std_20)
  # Pictures are a function of their inputs, bit for bit, on every machine: no contraction into fused operations.
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
  if(COMMAND carousel_target_options)
    carousel_target_options(${name})
  endif()
endfunction()
