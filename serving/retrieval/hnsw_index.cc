#include "serving/retrieval/hnsw_index.h"

#include <hnswlib/hnswlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/base/error.h"
#include "core/disk/disk.h"

namespace cairn::serving {

struct HnswIndex::Index {
  Index(std::int64_t width, std::int64_t vectors, int links, int ef_construction)
      : space(static_cast<std::size_t>(width)),
        graph(&space, static_cast<std::size_t>(vectors), static_cast<std::size_t>(links),
              static_cast<std::size_t>(ef_construction)) {}

  // hnswlib does not say whether it could write: the file then has not this size.
  std::uint64_t file_bytes() const {
    std::uint64_t bytes = 11 * 8 + 2 * 4 + graph.max_elements_ * graph.size_data_per_element_;
    for (std::size_t i = 0; i < graph.cur_element_count; ++i)
      bytes +=
          4 + (graph.element_levels_[i] > 0 ? graph.size_links_per_element_ *
                                                  static_cast<std::size_t>(graph.element_levels_[i])
                                            : 0);
    return bytes;
  }

  hnswlib::InnerProductSpace space;
  hnswlib::HierarchicalNSW<float> graph;
};

HnswIndex::HnswIndex(std::int64_t width, std::int64_t vectors, int links, int ef_construction)
    : index_(std::make_unique<Index>(width, vectors, links, ef_construction)) {}
HnswIndex::~HnswIndex() = default;

void HnswIndex::add(std::span<const float> vector, std::uint64_t label) {
  index_->graph.addPoint(vector.data(), label);
}

void HnswIndex::set_ef(int ef) { index_->graph.setEf(static_cast<std::size_t>(ef)); }

std::vector<std::uint64_t> HnswIndex::search(std::span<const float> query, std::int64_t k) const {
  std::vector<std::uint64_t> labels;
  auto found = index_->graph.searchKnn(query.data(), static_cast<std::size_t>(k));
  for (; !found.empty(); found.pop()) labels.push_back(found.top().second);
  return labels;
}

void HnswIndex::save(const std::string& path) const {
  const std::string beside = str(path, ".", ::getpid(), ".part");
  index_->graph.saveIndex(beside);
  std::error_code error;
  const std::uint64_t written = std::filesystem::file_size(beside, error);
  if (error || written != index_->file_bytes()) {
    std::filesystem::remove(beside, error);
    throw ResourceExhaustedError(str("writing ", path, ": ", written, " of ", index_->file_bytes(),
                                     " bytes were written: is the disk full?"));
  }
  system_disk().rename(beside, path);
}

}  // namespace cairn::serving
