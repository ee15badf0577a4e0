// Functions of a library that is opened at run time.
#pragma once
#include <dlfcn.h>

namespace cairn::cuda {

// False: the library has no function of that name.
template <typename Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace cairn::cuda
