// DatasetIterator: reads a Dataset, element by element, and can say at any moment where it stands.
//
//     auto it = open(dataset);
//     while (auto element = it->next()) ...
//     IteratorState state = it->state();        // small; send it, save it
//     auto same = open(dataset, state);         // anywhere: goes on exactly where `it` was
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/machine.h"
#include "core/base/offload.h"
#include "core/tensor/element.h"
#include "data/dataset/lines_read.h"
#include "data/dataset/open_bytes.h"
#include "data/dataset/pipes.h"
#include "data/dataset/service_source.h"

namespace cairn {

class Dataset;
class Stage;  // data/dataset/stage.h

inline constexpr std::size_t kIteratorStateBytesMax = 64u << 10;

// Where an iterator stands, after the elements that it handed out. Opaque, independent of the
// machine, and mostly below 100 bytes.
struct IteratorState {
  std::vector<std::byte> bytes;  // empty: at the beginning
  bool operator==(const IteratorState&) const = default;
};
// The number of elements handed out before the state was taken, without opening anything.
//   Errors  InvalidArgument: the bytes are not a state.
std::int64_t ordinal(const IteratorState& state);

struct OpenOptions {
  // For prefetch() and map() with parallel calls; it must outlive the iterator. nullptr: everything
  // happens in next().
  Offload* offload = nullptr;
  // The lane that prefetch work is submitted under; a map()'s calls go to the ones after it.
  std::size_t lane = 0;
  // Bytes of elements that a batch() or shuffle() may hold at once; more is ResourceExhausted.
  std::size_t buffer_bytes_max = machine_memory_bytes() / 2;
  // How long next() waits for a prefetched element, or for a call of a map(), at most.
  std::chrono::milliseconds prefetch_deadline{60'000};
  LineEvents line_events = {};
  // Whether a source of lines or TFRecords may be a pipe.
  Pipes pipes = Pipes::kRefuse;
  // Instead of files, for sources of text (FileSource::is_text()). An empty text is then passed
  // over, whatever EmptyFiles says.
  OpenBytes open_bytes = {};
  // For datasets whose elements come from a data service. Empty: what service::distribute() gave
  // the description, where it has not travelled.
  OpenElements open_elements = {};
};

// For a dataset whose elements come from a data service, a state holds the ordinal alone: elements
// that were handed out do not come again. An iterator that is opened at a state, or skips, only
// counts from there, and hands out what the job has left.
//   Thread  one at a time.
class DatasetIterator {
 public:
  DatasetIterator(std::unique_ptr<Stage> last, std::uint64_t fingerprint, ElementSpec spec);
  ~DatasetIterator();
  DatasetIterator(const DatasetIterator&) = delete;
  DatasetIterator& operator=(const DatasetIterator&) = delete;

  // The next element; empty at the end of the data, however often it is asked.
  //   Errors  InvalidArgument: the data is not as described (file, line and column are named).
  //           NotFound: a file is gone. DeadlineExceeded: see OpenOptions. After an error the
  //           iterator has not moved.
  std::optional<Element> next();
  // Elements handed out since the beginning, those before a resumed state included.
  std::int64_t ordinal() const { return ordinal_; }
  // Stands before element `ordinal` (or at the end, if there are fewer): ordinal() says where.
  // Reads no more than it must; going back starts from the beginning.
  void skip_to(std::int64_t ordinal);
  const IteratorState& state() const { return state_; }
  // Whether the elements come from a data service. ordinal() is then only a count, not a position
  // that can be returned to: see above.
  bool reads_once() const { return once_; }
  // Lines left out so far under OnError::kSkipAndCount, in this epoch; a shuffle or prefetch counts
  // the lines that it has read ahead.
  std::int64_t skipped() const;
  const ElementSpec& element_spec() const { return spec_; }

 private:
  friend std::unique_ptr<DatasetIterator> open(const Dataset&, const IteratorState&,
                                               const OpenOptions&);
  void restore(const IteratorState& state);
  void mend();
  IteratorState capture() const;

  std::unique_ptr<Stage> last_;
  std::uint64_t fingerprint_;  // of the description: a state of another one is refused
  ElementSpec spec_;
  bool once_ = false;  // reads_once(): ordinals are mere numbers
  std::int64_t ordinal_ = 0;
  IteratorState state_;  // after what was handed out
  // After an error the stages stand anywhere: they go back to state_ before they are used again.
  bool broken_ = false;
};

// Opens the files, at the beginning or at `state`.
//   Errors  NotFound: a file is missing. InvalidArgument: `state` is not of this description, or is
//           damaged.
std::unique_ptr<DatasetIterator> open(const Dataset& dataset, const IteratorState& state = {},
                                      const OpenOptions& options = {});

}  // namespace cairn
