// A layout, and memory for blobs, without any shard or network.
#pragma once
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/rows/layout.h"
#include "worker/rows/blob_memory.h"

namespace cairn::worker {

// Variables of float32, each dealt out in equal parts to all shards.
inline std::shared_ptr<Layout> layout_of(std::uint32_t shards,
                                         const std::vector<std::pair<std::string, Shape>>& all) {
  auto layout = std::make_shared<Layout>();
  layout->version = 1;
  layout->shards = shards_of({0, "sim://ps0", 1, 100}, shards);
  for (const auto& [name, shape] : all) {
    auto spec = std::make_shared<VariableSpec>();
    spec->name = name;
    spec->shape = shape;
    VariableLayout variable;
    variable.id = static_cast<VariableId>(layout->variables.size());
    ShardId shard = 0;
    for (const RowRange& rows : split_rows(spec->rows(), shards))
      variable.parts.push_back({shard++, rows});
    variable.spec = std::move(spec);
    layout->variables.push_back(std::move(variable));
  }
  return layout;
}

// "Shares" up to `room` bytes with a shard that is not there.
class FakeMemory final : public BlobMemory {
 public:
  explicit FakeMemory(std::size_t room) : room_(room) {}

  bool shares(std::size_t bytes) const override { return room_ > 0 && bytes >= 16; }
  bool shared(const Bytes& bytes) const override {
    for (const auto& [data, size] : taken_)
      if (bytes.data >= data && bytes.data + bytes.size <= data + size) return bytes.size > 0;
    return false;
  }
  Bytes take(std::size_t bytes) override {
    if (shares(bytes))
      if (Bytes taken = take_shared(bytes); taken.data != nullptr) return taken;
    return pooled_bytes(pool, bytes);
  }
  Bytes take_shared(std::size_t bytes) override {
    if (bytes > room_) return {};
    room_ -= bytes;
    std::shared_ptr<void> owner(std::aligned_alloc(8, (bytes + 7) / 8 * 8), std::free);
    auto* data = static_cast<std::byte*>(owner.get());
    taken_.emplace_back(data, bytes);
    return {std::move(owner), data, bytes};
  }

  rpc::BufferPool pool;

 private:
  std::size_t room_;
  std::vector<std::pair<std::byte*, std::size_t>> taken_;
};

}  // namespace cairn::worker
