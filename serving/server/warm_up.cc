#include "serving/server/warm_up.h"

#include <vector>

#include "core/base/error.h"
#include "serving/model/served_model.h"
#include "serving/server/joined_examples.h"

namespace cairn::serving {

void warm_up(const ServedModel& next, const std::deque<Element>& requests, int threads) {
  std::vector<const Element*> all;
  for (const Element& each : requests) all.push_back(&each);
  for (int thread = 0; thread < threads && !all.empty(); ++thread)
    for (std::size_t first = 0; first < all.size(); ++first) {
      const std::vector<const Element*> some(all.begin() + static_cast<std::ptrdiff_t>(first),
                                             all.end());
      try {
        std::int64_t examples = 0;
        for (const Element* each : some) examples += examples_of(next.about().input, *each);
        next.predict(joined_examples(next.about().input, some,
                                     next.is_by_example() ? computed_as(examples) : examples),
                     thread);
      } catch (const InvalidArgumentError&) {  // an id that this version does not have
      }
    }
}

}  // namespace cairn::serving
