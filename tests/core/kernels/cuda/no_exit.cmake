# nvcc compiles a host's call to a function that is __device__ alone, inside templates without a word, to exit(1): the process
# would end in silence. Nothing else in libcairn_cuda.so calls exit.
#   cmake -D NM=nm -D LIBRARY=libcairn_cuda.so -P no_exit.cmake
execute_process(COMMAND ${NM} -D --undefined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES " malloc")
  message(FATAL_ERROR "${NM} lists no symbols of ${LIBRARY}")
endif()
if(symbols MATCHES " exit(@[^\n]*)?\n")
  message(FATAL_ERROR "${LIBRARY} calls exit(): some host code calls a function that is CAIRN_DEVICE; make it CAIRN_ANYWHERE "
    "(core/kernels/cuda/runtime/group.h). Who: objdump -d -C ${LIBRARY} | grep -B 40 'exit@plt'")
endif()
