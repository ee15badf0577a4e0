# Whether libcairn_cuda.so is built: where a CUDA toolkit of version 13 is, and no sanitizer.
# The sources that compile for a GPU and, in tests, for the host.
set(CAIRN_CUDA_DEVICE_SOURCES
  device.cc ops/arrange.cu ops/convolution.cu ops/group_sums.cc ops/indexing.cu ops/kernel_table.cc ops/matmul.cc
  ops/normalise.cu ops/piece.cu ops/pooling.cu ops/random.cu ops/recommendation.cu ops/reduction.cu ops/row_gathers.cu
  ops/row_kernels.cu ops/scatter.cu ops/selection.cu ops/shape.cu ops/softmax.cu rows/cached_rows.cc rows/custom_rule.cu
  rows/row_cache.cc rows/row_cache_work.cu rows/rules.cu rows/rules_adaptive.cu rows/rules_moments.cu runtime/ahead.cc
  runtime/host_ranges.cc runtime/host_run.cc runtime/matrix_copy.cu runtime/memory_use.cc runtime/ordered_ids.cu
  runtime/queue.cc runtime/staging.cc runtime/times.cc trees/fused.cu trees/products.cc trees/program.cc trees/tree_run.cc
  trees/tree_source.cc)
list(TRANSFORM CAIRN_CUDA_DEVICE_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/core/kernels/cuda/)

# What kernels include that are compiled at run time, as texts in a source file. The standard's headers are all kernel_std.h.
set(CAIRN_KERNEL_HEADERS core/kernels/to_integer.h core/kernels/cuda/trees/casts.h core/kernels/cuda/trees/elementwise.h
  core/kernels/cuda/runtime/group.h core/kernels/cuda/runtime/half.h core/kernels/cuda/trees/kernel_std.h core/kernels/cuda/trees/tree_kernel.h)
set(CAIRN_KERNEL_HEADER_TEXTS "")
foreach(header ${CAIRN_KERNEL_HEADERS})
  file(READ ${PROJECT_SOURCE_DIR}/${header} text)
  string(APPEND CAIRN_KERNEL_HEADER_TEXTS "      {\"${header}\", R\"cairn(${text})cairn\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
endforeach()
foreach(header cmath cstdint cstring limits type_traits)
  string(APPEND CAIRN_KERNEL_HEADER_TEXTS "      {\"${header}\", \"#include \\\"core/kernels/cuda/trees/kernel_std.h\\\"\\n\"},\n")
endforeach()
set(CAIRN_KERNEL_HEADERS_SOURCE ${PROJECT_BINARY_DIR}/core/kernels/cuda/kernel_headers.cc)
configure_file(${PROJECT_SOURCE_DIR}/core/kernels/cuda/trees/kernel_headers.cc.in ${CAIRN_KERNEL_HEADERS_SOURCE} @ONLY)

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
