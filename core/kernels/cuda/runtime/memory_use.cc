#include "core/kernels/cuda/runtime/memory_use.h"

#include <cstdio>

#include "core/base/error.h"

namespace cairn::cuda {
namespace {

const char* text_of(Use use) {
  switch (use) {
    case Use::kVariables: return "variables";
    case Use::kValues: return "values of steps";
    case Use::kCache: return "caches of tables";
    case Use::kScratch: break;
  }
  return "scratch of kernels";
}

}  // namespace

std::string bytes_text(std::size_t bytes) {
  const auto in = [bytes](double unit, const char* name) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %s", static_cast<double>(bytes) / unit, name);
    return std::string(text);
  };
  if (bytes >= std::size_t{1} << 30) return in(0x1p30, "GiB");
  if (bytes >= std::size_t{1} << 20) return in(0x1p20, "MiB");
  return str(bytes, " bytes");
}

std::string exhausted_text(const std::string& missing, Use wanted, const MemoryUse& use) {
  std::string parts;
  for (const Use one : {Use::kVariables, Use::kCache, Use::kValues, Use::kScratch})
    parts += str(parts.empty()          ? ""
                 : one == Use::kScratch ? " and "
                                        : ", ",
                 bytes_text(use.bytes(one)), " of ", text_of(one));
  return str(
      missing, "; the memory was for ", text_of(wanted), ", and this process has there ", parts,
      ": run smaller batches, have fewer lanes or replicas on one GPU, or compute on the CPU "
      "(--device cpu)");
}

}  // namespace cairn::cuda
