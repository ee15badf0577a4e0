// Block: some consecutive elements on their way from stage to stage.
//
// Examples travel packed, column by column with a leading dimension; batches travel one Element
// each. The operations below hide the difference, so a stage that only picks elements is written
// once.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor/element.h"

namespace cairn {

// For every column of a spec: nothing special, the values of a ragged column, or its row splits.
struct BlockLayout {
  enum class Role : std::uint8_t { kDense, kRaggedValues, kRowSplits };
  struct Column {
    Role role = Role::kDense;
    std::size_t partner = 0;  // kRaggedValues: the place of its splits; kRowSplits: of its values
  };
  std::vector<Column> columns;
  explicit BlockLayout(const ElementSpec& spec);
};

class Block {
 public:
  Block() = default;  // no elements
  // Row splits may begin above 0 (a slice); values then are longer than the splits tell.
  static Block packed(std::shared_ptr<const BlockLayout> layout, std::int64_t size,
                      std::vector<Tensor> columns);
  static Block of(Element element);  // one batch
  static Block of(std::vector<Element> batches);

  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t bytes() const;                                          // roughly what it holds
  const std::vector<Tensor>& columns() const { return columns_; }     // packed only
  const std::vector<Element>& elements() const { return elements_; }  // batches only

  Block slice(std::int64_t begin, std::int64_t end) const;  // shares memory
  Block select(std::span<const std::int64_t> rows) const;   // copies
  static Block concat(std::vector<Block> parts);            // copies, unless there is only one
  // shares memory; row splits begin at 0, values end where they do
  Block trimmed() const;
  Element element(std::int64_t i) const;  // example i by itself, or batch i
  // packed only: all of it as one batch, splits from 0
  Element batch() const;

 private:
  std::int64_t size_ = 0;
  std::shared_ptr<const BlockLayout> layout_;  // packed only
  std::vector<Tensor> columns_;                // packed only
  std::vector<Element> elements_;              // batches only
};

}  // namespace cairn
