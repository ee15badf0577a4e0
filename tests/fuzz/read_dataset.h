// Reads a dataset over one file, for the targets of file formats.
#pragma once
#include "data/dataset.h"
#include "data/dataset_iterator.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/temporary_file.h"

namespace cairn::fuzz {

inline void read_some(DatasetIterator& iterator) {
  constexpr int kElementsMax = 200;
  for (int i = 0; i < kElementsMax && iterator.next(); ++i) continue;
}

// Reads it and resumes it; with `stages`, sharded, shuffled and in batches.
template <typename Make>
void read_or_refuse(Make make, bool stages) {
  may_refuse([&] {
    const Dataset all = make();
    const Dataset dataset = stages ? all.shard(3, 1).shuffle(4, 1).batch(2) : all;
    const auto iterator = open(dataset);
    if (stages) iterator->skip_to(1);
    read_some(*iterator);
    read_some(*open(dataset, iterator->state()));
  });
}

inline OnError policy_of(unsigned choice, unsigned bit) {
  return (choice & bit) != 0 ? OnError::kSkipAndCount : OnError::kFail;
}

}  // namespace cairn::fuzz
