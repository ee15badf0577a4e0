// DataPositions: where the iterators of a strategy of this process stand in their data. They are
// named by the order in which a program makes them, "iterated 0", "iterated 1" and so on, as under
// parameter servers, so that the same program finds its places again.
//   Thread  one at a time.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "coordinator/progress/pipelines.h"
#include "core/graph/function.h"
#include "data/dataset/input_context.h"
#include "strategy/base/data_cursor.h"

namespace cairn {

class DataPositions {
 public:
  // Where the iterator stands is known from now on, and kept when it has gone: the iterator as
  // programs hold it. `cursor` is within `source`. It begins where a restored checkpoint had it, if
  // one was restored that knows it. `pipeline` says which one of several it reads.
  //   Errors  InvalidArgument: there it was another dataset.
  std::shared_ptr<const IteratorSource> add(std::shared_ptr<const IteratorSource> source,
                                            DataCursor& cursor, const InputContext& pipeline);

  std::vector<PipelinePosition> positions() const;
  // Whether those of iterators that are there are positions in their data.
  //   Errors  as of add().
  void verify(const std::vector<PipelinePosition>& positions) const;
  // Iterators that are there go where the checkpoint had them; those that are made later begin
  // there.
  //   Errors  as of add().
  void restore(std::vector<PipelinePosition> positions);

 private:
  struct Entry {
    std::string dataset;
    InputContext pipeline;
    DataCursor* cursor = nullptr;  // null: it has gone
    PipelinePosition last;         // where it stood then
  };
  static const PipelinePosition* find(const Entry& entry,
                                      const std::vector<PipelinePosition>& positions);
  void place(const Entry& entry) const;

  // shared with the iterators, which may go later than this
  std::shared_ptr<std::vector<Entry>> entries_ = std::make_shared<std::vector<Entry>>();
  std::vector<PipelinePosition> restored_;
};

}  // namespace cairn
