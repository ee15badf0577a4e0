#include "core/kernels/cuda/trees/nvrtc.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/library_function.h"
#include "core/kernels/cuda/trees/kernel_headers.h"

namespace cairn::cuda {
namespace {

void* open_library() {
  for (const char* const name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

// NVRTC opens a second library by its name, which the loader may not find where it found the first,
// and which is found in any case once it is loaded.
void load_builtins(const void* of_nvrtc, int major, int minor) {
  Dl_info found{};
  if (dladdr(of_nvrtc, &found) == 0 || found.dli_fname == nullptr) return;
  const auto folder = std::filesystem::path(found.dli_fname).parent_path();
  const std::string name = str("libnvrtc-builtins.so.", major, ".", minor);
  dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

Nvrtc load_nvrtc() {
  Nvrtc made;
  void* const library = open_library();
  if (library == nullptr) {
    made.text = "NVRTC is not found (libnvrtc.so.13; set LD_LIBRARY_PATH)";
    return made;
  }
  int (*get_version)(int*, int*) = nullptr;
  int major = 0, minor = 0;
  made.found = load(library, "nvrtcCreateProgram", made.create) &&
               load(library, "nvrtcCompileProgram", made.compile) &&
               load(library, "nvrtcGetCUBINSize", made.code_size) &&
               load(library, "nvrtcGetCUBIN", made.code) &&
               load(library, "nvrtcGetProgramLogSize", made.log_size) &&
               load(library, "nvrtcGetProgramLog", made.log) &&
               load(library, "nvrtcDestroyProgram", made.destroy) &&
               load(library, "nvrtcGetErrorString", made.describe) &&
               load(library, "nvrtcVersion", get_version) && get_version(&major, &minor) == 0;
  if (made.found) load_builtins(reinterpret_cast<const void*>(get_version), major, minor);
  made.text = made.found ? str("by NVRTC ", major, ".", minor)
                         : "libnvrtc lacks functions of NVRTC's: one of CUDA 12 or 13 has them";
  return made;
}

// Products and sums are rounded one by one, as in the interpreter.
std::vector<std::string> options_for(int capability) {
  return {str("--gpu-architecture=sm_", capability), "--std=c++20", "--fmad=false",
          "-default-device"};
}

void check(int status, std::string_view what, std::string_view details = "") {
  if (status != 0)
    throw InternalError(
        str(what, ": NVRTC: ", nvrtc().describe(status), details.empty() ? "" : "\n", details));
}

class Compilation {
 public:
  explicit Compilation(const KernelSource& source) {
    std::vector<const char*> texts, names;
    for (const KernelHeader& header : kernel_headers()) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    check(nvrtc().create(&program_, source.text.c_str(), (source.name + ".cu").c_str(),
                         static_cast<int>(names.size()), texts.data(), names.data()),
          source.name);
  }
  ~Compilation() { nvrtc().destroy(&program_); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  int compile(const std::vector<std::string>& options) {
    std::vector<const char*> given;
    for (const std::string& option : options) given.push_back(option.c_str());
    return nvrtc().compile(program_, static_cast<int>(given.size()), given.data());
  }
  std::string log() const {
    std::size_t bytes = 0;
    if (nvrtc().log_size(program_, &bytes) != 0 || bytes < 2) return "";
    std::string text(bytes, '\0');
    if (nvrtc().log(program_, text.data()) != 0) return "";
    text.resize(bytes - 1);  // without the zero that ends it
    return text;
  }
  std::string code(std::string_view name) const {
    std::size_t bytes = 0;
    check(nvrtc().code_size(program_, &bytes), name);
    std::string made(bytes, '\0');
    check(nvrtc().code(program_, made.data()), name);
    return made;
  }

 private:
  NvrtcProgram program_ = nullptr;
};

}  // namespace

const Nvrtc& nvrtc() {
  static const Nvrtc loaded = load_nvrtc();
  return loaded;
}

std::string compiler_key(int capability) {
  std::string key = nvrtc().text;
  for (const std::string& option : options_for(capability)) key += str(" ", option);
  for (const KernelHeader& header : kernel_headers())
    key += str("\n", header.name, "\n", header.text);
  return key;
}

std::string compile_kernel(const KernelSource& source, int capability) {
  CAIRN_CHECK(nvrtc().found, "there is no NVRTC");
  Compilation compilation(source);
  const int status = compilation.compile(options_for(capability));
  if (status != 0) check(status, source.name, compilation.log());
  return compilation.code(source.name);
}

}  // namespace cairn::cuda
