#include "service/base/processing_mode.h"

#include <array>

#include "core/base/error.h"

namespace cairn::service {
namespace {

constexpr std::array<std::string_view, 6> kModeNames = {"OFF",  "DYNAMIC",      "FILE",
                                                        "DATA", "FILE_OR_DATA", "HINT"};

}  // namespace

std::string_view name_of(ProcessingMode mode) {
  return kModeNames.at(static_cast<std::size_t>(mode));
}

ProcessingMode parse_processing_mode(std::string_view text) {
  if (text == "parallel_epochs") return ProcessingMode::kOff;
  if (text == "distributed_epoch") return ProcessingMode::kDynamic;
  for (std::size_t i = 0; i < kModeNames.size(); ++i)
    if (text == kModeNames[i]) return static_cast<ProcessingMode>(i);
  throw InvalidArgumentError(
      str("\"", text,
          "\" is no processing mode: use OFF, DYNAMIC, FILE, DATA, FILE_OR_DATA, HINT, "
          "parallel_epochs or distributed_epoch"));
}

ProcessingMode processing_mode(std::uint8_t number) {
  if (number >= kModeNames.size())
    throw InvalidArgumentError(
        str("processing mode ", unsigned{number}, " is unknown: is the other side newer?"));
  return static_cast<ProcessingMode>(number);
}

}  // namespace cairn::service
