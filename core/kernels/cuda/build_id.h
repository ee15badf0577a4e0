// Distinguishes builds whose programs and libraries cannot work together, because objects of C++
// pass between them.
#pragma once

namespace cairn::cuda {

constexpr const char* build_id() { return CAIRN_BUILD_ID; }

}  // namespace cairn::cuda
