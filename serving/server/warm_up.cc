#include "serving/server/warm_up.h"

#include <vector>

#include "core/base/error.h"
#include "core/base/look_up.h"
#include "serving/model/served_model.h"
#include "serving/server/joined_examples.h"

namespace cairn::serving {
namespace {

// The requests from `first` on that a batch has room for; one at least.
Element batch_from(const ServedModel& next, const RecentRequests& recent, std::size_t first) {
  const ElementSpec& input = next.about().input;
  std::vector<const Element*> some;
  std::int64_t examples = 0;
  for (std::size_t i = first; i < recent.columns.size(); ++i) {
    const std::int64_t more = examples_of(input, recent.columns[i]);
    if (i > first && examples + more > recent.largest_batch) break;
    some.push_back(&recent.columns[i]);
    examples += more;
  }
  return joined_examples(input, some, next.is_by_example() ? computed_as(examples) : examples);
}

}  // namespace

void warm_up(const ServedModel& next, const RecentRequests& recent, int threads) {
  for (int thread = 0; thread < threads; ++thread)
    for (std::size_t first = 0; first < recent.columns.size(); ++first) {
      look_up();
      try {
        next.predict(batch_from(next, recent, first), thread);
      } catch (const InvalidArgumentError&) {  // an id that this version does not have
      }
    }
}

}  // namespace cairn::serving
