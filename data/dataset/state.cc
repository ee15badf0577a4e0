#include "data/dataset/state.h"

#include "core/base/error.h"

namespace cairn {

// Seven bits per byte, the lowest first; the high bit says that more follow.
void StateWriter::number(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 0x80));
  bytes_.push_back(static_cast<std::byte>(value));
}

void StateWriter::blob(std::span<const std::byte> bytes) {
  number(bytes.size());
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

// At most ten bytes, so a run of continuation bits cannot make the loop long.
std::uint64_t StateReader::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (bytes_.empty()) throw InvalidArgumentError("the iterator state is cut short");
    auto byte = static_cast<std::uint64_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  throw InvalidArgumentError("the iterator state holds a number of more than 64 bits");
}

std::int64_t StateReader::number_up_to(std::int64_t most, std::string_view what) {
  std::uint64_t value = number();
  if (value > static_cast<std::uint64_t>(most))
    throw InvalidArgumentError(str("the iterator state is damaged or of other data: ", what, " is ",
                                   value, ", at most ", most, " is possible"));
  return static_cast<std::int64_t>(value);
}

// A view of the state: nothing is copied, and no length is believed that the state does not have.
std::span<const std::byte> StateReader::blob() {
  std::uint64_t size = number();
  if (size > bytes_.size()) throw InvalidArgumentError("the iterator state is cut short");
  auto all = bytes_.first(size);
  bytes_ = bytes_.subspan(size);
  return all;
}

void StateReader::expect_end() const {
  if (!bytes_.empty())
    throw InvalidArgumentError(str("the iterator state is ", bytes_.size(), " bytes too long"));
}

}  // namespace cairn
