#include "data/stage/cache_store.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn {
namespace {

// A tensor's cost beside its values, roughly: its object, its dimensions and the owner of its
// buffer. Small elements cost mostly that, so that a bound which counted values alone would be
// exceeded many times.
constexpr std::size_t kTensorBytes = sizeof(Tensor) + 96;

// Texts of up to 15 bytes lie within their std::string object (libstdc++).
std::size_t value_bytes(const Tensor& tensor) {
  if (tensor.dtype() != DType::kString) return kTensorBytes + tensor.bytes();
  std::size_t bytes = kTensorBytes;
  for (const std::string& text : tensor.string_values())
    bytes += sizeof(std::string) + (text.size() > 15 ? text.size() : 0);
  return bytes;
}

std::size_t block_bytes(const Block& block) {
  std::size_t bytes = 0;
  for (const Tensor& column : block.columns()) bytes += value_bytes(column);
  for (const Element& element : block.elements())
    for (const Tensor& column : element) bytes += value_bytes(column);
  return bytes;
}

class MemoryCache final : public CacheStore {
 public:
  using CacheStore::CacheStore;

 private:
  void put(Block group) override { groups_.push_back(std::move(group)); }
  const Block& get(std::size_t group) override { return groups_[group]; }
  std::vector<Block> groups_;
};

}  // namespace

CacheStore::CacheStore(const CacheSpec& spec, std::shared_ptr<const BlockLayout> layout)
    : spec_(spec), layout_(std::move(layout)) {}

// The order keeps the promise that an error changes nothing: the bound is checked first, then a
// full group is put away, which may fail on the disk, and only then the new elements are added.
void CacheStore::append(const Block& block) {
  Block own = block.trimmed();
  const std::size_t bytes = block_bytes(own);
  if (bytes > static_cast<std::size_t>(spec_.bytes_max - bytes_))
    throw ResourceExhaustedError(
        str("cache(): its ", spec_.bytes_max, " bytes are full after ", size(),
            " elements, and there is more data; raise "
            "CacheOptions::bytes_max",
            spec_.file.empty() ? ", cache to a file with CacheOptions::file" : "",
            ", put cache() below the stages that make elements larger, or leave it out"));
  if (growing_bytes_ + bytes > kCacheGroupBytes) put_growing();
  bytes_ += static_cast<std::int64_t>(bytes);
  growing_size_ += own.size();
  growing_bytes_ += bytes;
  growing_.push_back(std::move(own));
}

// If put() throws, the joined group stays the growing one, and the next call tries again.
void CacheStore::put_growing() {
  if (growing_.empty()) return;
  if (growing_.size() > 1) {
    Block whole = Block::concat(std::move(growing_));
    growing_.clear();
    growing_.push_back(std::move(whole));
  }
  // Joined parts have fewer tensors, and so cost less beside their values.
  bytes_ += static_cast<std::int64_t>(block_bytes(growing_.front())) -
            static_cast<std::int64_t>(growing_bytes_);
  growing_bytes_ = block_bytes(growing_.front());
  put(growing_.front());
  starts_.push_back(sealed_);
  sealed_ += growing_size_;
  growing_.clear();
  growing_size_ = 0;
  growing_bytes_ = 0;
}

void CacheStore::finish() {
  if (complete_) return;
  put_growing();
  seal();
  complete_ = true;
}

void CacheStore::set_complete(std::vector<std::int64_t> starts, std::int64_t size) {
  starts_ = std::move(starts);
  sealed_ = size;
  complete_ = true;
}

// Groups are found by bisection over their first elements; the parts of the growing group, of which
// there are few, one by one.
Block CacheStore::read(std::int64_t place, std::int64_t most) {
  if (place < sealed_) {
    const auto group =
        static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), place) -
                                 starts_.begin()) -
        1;
    const Block& block = get(group);
    const std::int64_t at = place - starts_[group];
    return block.slice(at, std::min(block.size(), at + most));
  }
  std::int64_t at = place - sealed_;
  for (const Block& part : growing_) {
    if (at < part.size()) return part.slice(at, std::min(part.size(), at + most));
    at -= part.size();
  }
  CAIRN_CHECK(false, "a cache of ", size(), " elements was asked for element ", place);
}

std::unique_ptr<CacheStore> make_memory_cache(const CacheSpec& spec,
                                              std::shared_ptr<const BlockLayout> layout) {
  return std::make_unique<MemoryCache>(spec, std::move(layout));
}

}  // namespace cairn
