// HnswIndex: an index of vectors by their product, in the format of hnswlib, which is included
// nowhere else.
//   Source  Malkov, Yashunin, "Efficient and robust approximate nearest neighbor search using
//           Hierarchical Navigable Small World graphs", arXiv:1603.09320.
//   Thread  one that adds; then any that search.
//   Cost    the whole index is in memory: its vectors, and about 8 M + 20 bytes for each.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cairn::serving {

class HnswIndex {
 public:
  // `links` (M) and `ef_construction` as hnswlib has them.
  HnswIndex(std::int64_t width, std::int64_t vectors, int links, int ef_construction);
  ~HnswIndex();
  HnswIndex(const HnswIndex&) = delete;
  HnswIndex& operator=(const HnswIndex&) = delete;

  void add(std::span<const float> vector, std::uint64_t label);
  // How many of the nearest vectors a search keeps in view, at least; more finds better ones, and
  // takes longer. To be set before searches begin.
  void set_ef(int ef);
  // The labels of up to `k` vectors whose products with the query are about the largest, in no
  // order.
  std::vector<std::uint64_t> search(std::span<const float> query, std::int64_t k) const;
  // Writes the file as a whole, for hnswlib.Index(space="ip", dim=width).load_index(path).
  //   Errors  those of the disk.
  void save(const std::string& path) const;

 private:
  struct Index;
  std::unique_ptr<Index> index_;
};

}  // namespace cairn::serving
