// DealtIterator: a dataset's elements, dealt out to the replicas in sync of one process.
//
//   kCut     Each global batch, a short one too, is cut into as many pieces as there are replicas,
//            of ceil(batch / replicas) examples each; the last pieces may be shorter, or empty.
//            This is the reference's rule for data that is not sharded by files.
//   kInTurn  Batches that were made for a replica each go to the replicas in turn. If the data ends
//            between two replicas, those that come away empty-handed get a batch of no examples,
//            unless the size of a batch is fixed: then the rest is left out, as in the reference.
//
//   kInTurnOfSome  The same, where other processes have data of their own: since one whose data
//            ends first goes on with batches of no examples, no size of a batch is fixed.
//
//   Errors  InvalidArgument, when made: elements are no batches. OutOfRange: the data has ended.
//   Thread  one at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/graph/function.h"
#include "data/dataset/batch_pieces.h"
#include "data/dataset/dataset.h"
#include "strategy/base/data_cursor.h"

namespace cairn {

enum class Dealing : std::uint8_t { kCut, kInTurn, kInTurnOfSome };

class DealtIterator final : public IteratorSource {
 public:
  // `fetches`: elements may be read before their step, so that they are on its devices by then.
  DealtIterator(const Dataset& dataset, Dealing how, int replicas, Offload& offload,
                bool fetches = true);

  Dealing how() const { return how_; }
  // The spec of the elements that each replica gets.
  const ElementSpec& element_spec() const override { return spec_; }
  // The next element of every replica. Const, as is what steps share.
  std::vector<Element> next() const;
  // By replica, the values of the elements that so many calls of next() will give it, as far as
  // they can be read before (DataCursor::read_ahead); none for elements that cannot be dealt.
  std::vector<std::vector<Tensor>> read_ahead(std::size_t calls) const;
  bool fetches() const { return fetches_; }
  // In global batches, or batches of a replica.
  DataCursor& cursor() const { return cursor_; }

 private:
  std::vector<Element> cut() const;
  std::vector<Element> in_turn() const;

  const ElementSpec whole_;
  ElementSpec spec_;
  const Dealing how_;
  const int replicas_;
  const bool fixed_size_, fetches_;
  mutable DataCursor cursor_;
};

}  // namespace cairn
