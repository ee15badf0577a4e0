// CacheStore: the elements that a cache() has seen, from the first one on, in memory or in a file.
// Kept elements are always a beginning of the sequence, without gaps.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset/block.h"
#include "data/dataset/stage_spec.h"

namespace cairn {

// Elements are kept in groups of about kCacheGroupBytes, the last of which is still growing. Groups
// make one tensor of many small ones, and are the unit that a file is read by.
//   Thread  one at a time.
class CacheStore {
 public:
  CacheStore(const CacheSpec& spec, std::shared_ptr<const BlockLayout> layout);
  virtual ~CacheStore() = default;

  std::int64_t size() const { return sealed_ + growing_size_; }
  // Whether size() is all there is: finish() was called, or a complete file was found.
  bool complete() const { return complete_; }
  // Puts elements behind the others. After an error it holds what it held before.
  //   Errors  ResourceExhausted: they would exceed the bound, or the file's disk is full.
  void append(const Block& block);
  void finish();  // the last element has been appended
  // From 1 to `most` elements from `place` on, which is below size().
  //   Errors  DataLoss: the file is damaged.
  Block read(std::int64_t place, std::int64_t most);

 protected:
  // Each kind of store implements these. Groups are put once, in order, and then only read.
  virtual void put(Block group) = 0;                // becomes group number groups()
  virtual const Block& get(std::size_t group) = 0;  // valid until the next call
  virtual void seal() {}                            // every group was put
  // Constructors call this for a file that was found complete.
  void set_complete(std::vector<std::int64_t> starts, std::int64_t size);
  std::size_t groups() const { return starts_.size(); }
  const std::vector<std::int64_t>& starts() const { return starts_; }

  const CacheSpec spec_;
  const std::shared_ptr<const BlockLayout> layout_;

 private:
  void put_growing();

  std::vector<std::int64_t> starts_;  // by group: its first element
  std::int64_t sealed_ = 0;           // elements in groups
  std::vector<Block> growing_;
  std::int64_t growing_size_ = 0;
  std::size_t growing_bytes_ = 0;
  std::int64_t bytes_ = 0;
  bool complete_ = false;
};

// Large enough that tensors cost little beside their values, small enough to be read for one
// element.
inline constexpr std::size_t kCacheGroupBytes = 256u << 10;

// Elements in memory, dropped with the store.
std::unique_ptr<CacheStore> make_memory_cache(const CacheSpec& spec,
                                              std::shared_ptr<const BlockLayout> layout);
// `fingerprint` is that of the dataset below the cache; it ends the file's name. A complete file is
// used as it is; otherwise one is written beside it, which takes the name when the last element is
// in it.
//   Errors  DataLoss: the file is damaged. PermissionDenied, NotFound: the folder.
std::unique_ptr<CacheStore> make_file_cache(const CacheSpec& spec,
                                            std::shared_ptr<const BlockLayout> layout,
                                            std::uint64_t fingerprint);

}  // namespace cairn
