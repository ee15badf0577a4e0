// Reads a dataset over one file, for the targets of file formats.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "core/base/error.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/targets.h"

namespace cairn::fuzz {

// A file in memory under a path of its own, for readers that open paths.
class TemporaryFile {
 public:
  explicit TemporaryFile(Bytes bytes) : fd_(::memfd_create("cairn-fuzz", MFD_CLOEXEC)) {
    CAIRN_CHECK(
        fd_ >= 0 && ::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
        "no file in memory");
  }
  ~TemporaryFile() { ::close(fd_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return str("/proc/self/fd/", fd_); }

 private:
  int fd_;
};

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
