# Whether libcairn_cuda.so is built: where a CUDA toolkit of version 13 is, and no sanitizer.
# The sources that compile for a GPU and, in tests, for the host.
set(CAIRN_CUDA_DEVICE_SOURCES
  ahead.cc arrange.cu cached_rows.cc convolution.cu custom_rule.cu device.cc fused.cu group_sums.cc host_ranges.cc host_run.cc indexing.cu kernel_table.cc matmul.cc matrix_copy.cu memory_use.cc
  normalise.cu ordered_ids.cu piece.cu pooling.cu products.cc program.cc queue.cc random.cu recommendation.cu reduction.cu row_cache.cc
  row_cache_work.cu row_gathers.cu row_kernels.cu rules.cu rules_adaptive.cu rules_moments.cu scatter.cu selection.cu shape.cu softmax.cu staging.cc times.cc tree_run.cc tree_source.cc)
list(TRANSFORM CAIRN_CUDA_DEVICE_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/core/kernels/cuda/)

# What kernels include that are compiled at run time, as texts in a source file. The standard's headers are all kernel_std.h.
set(CAIRN_KERNEL_HEADERS core/kernels/to_integer.h core/kernels/cuda/casts.h core/kernels/cuda/elementwise.h
  core/kernels/cuda/group.h core/kernels/cuda/half.h core/kernels/cuda/kernel_std.h core/kernels/cuda/tree_kernel.h)
set(CAIRN_KERNEL_HEADER_TEXTS "")
foreach(header ${CAIRN_KERNEL_HEADERS})
  file(READ ${PROJECT_SOURCE_DIR}/${header} text)
  string(APPEND CAIRN_KERNEL_HEADER_TEXTS "      {\"${header}\", R\"cairn(${text})cairn\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
endforeach()
foreach(header cmath cstdint cstring limits type_traits)
  string(APPEND CAIRN_KERNEL_HEADER_TEXTS "      {\"${header}\", \"#include \\\"core/kernels/cuda/kernel_std.h\\\"\\n\"},\n")
endforeach()
set(CAIRN_KERNEL_HEADERS_SOURCE ${PROJECT_BINARY_DIR}/core/kernels/cuda/kernel_headers.cc)
configure_file(${PROJECT_SOURCE_DIR}/core/kernels/cuda/kernel_headers.cc.in ${CAIRN_KERNEL_HEADERS_SOURCE} @ONLY)

option(CAIRN_CUDA "Build libcairn_cuda.so where there is a CUDA toolkit" ON)
if(CAIRN_CUDA AND NOT CAIRN_SANITIZE)
  include(CheckLanguage)
  find_program(CAIRN_NVCC nvcc PATHS /usr/local/cuda/bin)
  # Named in the environment, so that one that does not work, such as a link to a toolkit that is gone, is found out by check_language.
  if(CAIRN_NVCC AND NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} ${CAIRN_NVCC})
  endif()
  set(CMAKE_CUDA_ARCHITECTURES 90)  # for CMake's own try; our target says its own
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    find_package(CUDAToolkit 13)
  endif()
endif()
if(TARGET CUDA::cublasLt)
  set(CAIRN_BUILDS_CUDA ON)
  message(STATUS "CUDA ${CUDAToolkit_VERSION}: building libcairn_cuda.so")
else()
  set(CAIRN_BUILDS_CUDA OFF)
  message(STATUS "libcairn_cuda.so is not built: no CUDA 13 toolkit that works, or switched off")
endif()
