#include "tools/job/parts/embedded_ids.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "nn/layers/id_cross.h"

namespace cairn::tools {

std::vector<IdFeature> embedded_ids(const Job& job, const FittedFeatures& features) {
  std::vector<IdFeature> all = features.ids;
  for (const JobFeatures::Cross& cross : job.features.crosses) {
    IdFeature made{.name = cross.name()};
    std::vector<std::int64_t> rows;
    for (const std::string& name : cross.columns) {
      const auto found = std::ranges::find(features.ids, name, &IdFeature::name);
      CAIRN_CHECK(found != features.ids.end(), "a cross of no feature: ", name);
      made.crossed.push_back(*found);
      rows.push_back(found->rows);
    }
    try {
      made.rows = nn::IdCross(std::move(rows), cross.buckets).rows();
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(str(cross.place, ": features.crosses: ", error.what()));
    }
    if (cross.deep) all.push_back(std::move(made));
  }
  return all;
}

}  // namespace cairn::tools
