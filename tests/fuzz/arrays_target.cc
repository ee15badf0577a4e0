#include <cstring>

#include "core/base/error.h"
#include "tests/fuzz/refusal.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/ckpt/import_plan.h"

namespace cairn::fuzz {
namespace {

class InputBytes final : public tools::ckpt::ByteSource {
 public:
  explicit InputBytes(Bytes bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::byte* to, std::size_t size) const override {
    CAIRN_CHECK(offset <= bytes_.size() && size <= bytes_.size() - offset,
                "bytes are read that there are not");
    if (size > 0) std::memcpy(to, bytes_.data() + offset, size);
  }

 private:
  Bytes bytes_;
};

}  // namespace

// The first byte chooses the format. What is listed lies within the file, and can be planned.
void arrays(Bytes input) {
  const unsigned format = take_choice(input) % 3;
  const InputBytes source(input);
  may_refuse([&] {
    tools::ckpt::ArrayListing listing = format == 0   ? list_safetensors(source, "the input")
                                        : format == 1 ? list_npz(source, "the input")
                                                      : list_bundle(source, "the input");
    // The arrays of a bundle lie in other files.
    for (const auto& array : listing.arrays)
      CAIRN_CHECK(format == 2 || (array.offset <= input.size() &&
                                  array.info.bytes() <= input.size() - array.offset),
                  "an array lies outside of its file");
    // A count of steps would lie in a file that is not there.
    const auto slots = tools::ckpt::take_bundle_slots(listing, "adam");
    tools::ckpt::plan_import("the input", std::move(listing), {}, slots);
  });
}

}  // namespace cairn::fuzz
