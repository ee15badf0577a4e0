// Batches in pieces: how a global batch is cut among replicas.
//   Thread  any.
#pragma once
#include <cstdint>
#include <vector>

#include "core/tensor/element.h"

namespace cairn {

// How many examples a batch has.
std::int64_t batch_size(const ElementSpec& spec, const Element& batch);
// Examples [begin, end) of a batch; of a ragged column their values, numbered from 0.
Element cut_batch(const ElementSpec& spec, const Element& batch, std::int64_t begin,
                  std::int64_t end);
// The batch in `count` pieces of ceil(size / count) examples, as tf.data's legacy rebatching cuts
// it: the first pieces are full, the last ones may have fewer or none.
std::vector<Element> cut_in_pieces(const ElementSpec& spec, const Element& batch,
                                   std::int64_t count);
// A batch of no examples.
Element empty_batch(const ElementSpec& spec);

// Has every batch so many examples that the spec tells how many?
bool has_fixed_size(const ElementSpec& batches);
// Of such pieces: of any size, but where every batch has one that divides evenly.
ElementSpec pieces_spec(const ElementSpec& batches, std::int64_t count);
// Of what rebatch() makes: of any size, but where all batches, and all new ones, have one that is
// known and fits.
ElementSpec rebatched_spec(const ElementSpec& batches, const std::vector<std::int64_t>& sizes,
                           bool drop_remainder);
// Of batches that may have any size.
ElementSpec any_size_spec(const ElementSpec& batches);

}  // namespace cairn
