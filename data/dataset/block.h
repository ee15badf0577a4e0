// Block: some consecutive elements on their way from stage to stage.
//
// Examples travel packed, column by column with a leading dimension; batches, and examples whose
// shapes differ from one to the next, travel loose, as one Element each. The operations below hide
// the difference, so that a stage which only picks elements is written once.
//
// Packing is what makes a pipeline fast: a stage is called once for some hundred examples, and a
// column is one run of memory.
//   Thread  values; copies share tensors, which are never changed.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor/element.h"

namespace cairn {

// Says of each column whether it is ordinary, the values of a ragged column, or its row splits.
struct BlockLayout {
  enum class Role : std::uint8_t { kDense, kRaggedValues, kRowSplits };
  struct Column {
    Role role = Role::kDense;
    std::size_t partner = 0;  // kRaggedValues: the place of its splits; kRowSplits: of its values
  };
  std::vector<Column> columns;
  explicit BlockLayout(const ElementSpec& spec);
};

// Do all elements have one shape in each column but the ragged ones? Else they stay loose.
bool has_known_shapes(const ElementSpec& spec);

// Some elements. Packed or loose, never both; an empty block is neither.
class Block {
 public:
  Block() = default;  // no elements
  // Examples. Row splits may begin above 0, as those of a slice do; then the values are longer than
  // the splits tell. trimmed() undoes that.
  static Block packed(std::shared_ptr<const BlockLayout> layout, std::int64_t size,
                      std::vector<Tensor> columns);
  static Block of(Element element);  // one, loose
  static Block of(std::vector<Element> elements);

  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t bytes() const;                                          // roughly what it holds
  const std::vector<Tensor>& columns() const { return columns_; }     // packed only
  const std::vector<Element>& elements() const { return elements_; }  // loose only

  // These make another block of the same kind and leave this one as it is.
  Block slice(std::int64_t begin, std::int64_t end) const;  // shares memory
  Block select(std::span<const std::int64_t> rows) const;   // copies
  static Block concat(std::vector<Block> parts);            // copies, unless there is only one
  // The same elements packed, whose layout is `layout`; as it is, if it is packed.
  //   Errors  InvalidArgument: elements of different shapes.
  Block pack(const std::shared_ptr<const BlockLayout>& layout) const;
  // The same elements loose.
  Block loosen() const;
  // The same elements with row splits that begin at 0 and values that end where they do. Shares
  // memory.
  Block trimmed() const;
  // One element as a value of its own.
  Element element(std::int64_t i) const;  // example i without its leading dimension, or batch i
  // Packed only: all of it as one batch, with splits from 0 and columns aligned to 8 bytes.
  Element batch() const;

 private:
  std::int64_t size_ = 0;
  std::shared_ptr<const BlockLayout> layout_;  // packed only
  std::vector<Tensor> columns_;                // packed only
  std::vector<Element> elements_;              // loose only
};

}  // namespace cairn
