# Compile options that every target shares. Floating point has one specified meaning on the CPU and the GPU: nothing is
# contracted or reordered (images are equal bit for bit), so these flags are part of the semantics, not of the tuning.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(CAROUSEL_WITH_CUDA AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # nvcc takes C++20 from 12.0 on; the CMake 3.25 of Debian 12 doesn't know it.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
find_program(CAROUSEL_CCACHE ccache)
if(CAROUSEL_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CAROUSEL_CCACHE})
  if(CAROUSEL_WITH_CUDA)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CAROUSEL_CCACHE})
  endif()
endif()
option(CAROUSEL_STATIC_LIBSTDCXX "Link the C++ runtime statically (binaries that travel)" OFF)

if(CAROUSEL_SANITIZE)
  # Every target has it or none: a sanitised library in an unsanitised program doesn't link.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CAROUSEL_SANITIZE}>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${CAROUSEL_SANITIZE})
endif()

function(carousel_target_options target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wno-unused-parameter -ffp-contract=off>
    $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -prec-div=true -prec-sqrt=true -ftz=false --expt-relaxed-constexpr
      -Xcompiler=-Wall,-Wextra,-ffp-contract=off>)
  if(CAROUSEL_WERROR)
    # g++ 12 and 13 raise false alarms of these three kinds in inlined code of the standard library and of fmt.
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
