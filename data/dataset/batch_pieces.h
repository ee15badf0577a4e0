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

// Whether the spec says how many examples each batch has.
bool has_fixed_size(const ElementSpec& batches);
// The spec of such pieces. A size is known only if `count` divides that of every batch.
ElementSpec pieces_spec(const ElementSpec& batches, std::int64_t count);
// The spec of what rebatch() makes. A size is known only if all new batches have the same, and it
// divides that of every old batch or `drop_remainder` is set.
ElementSpec rebatched_spec(const ElementSpec& batches, const std::vector<std::int64_t>& sizes,
                           bool drop_remainder);
// The spec of the same batches if they may have any size.
ElementSpec any_size_spec(const ElementSpec& batches);

}  // namespace cairn
