#include "tools/job/spec/job_crosses.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/tensor/known_names.h"
#include "tools/job/spec/job_columns.h"
#include "tools/job/spec/job_format.h"

namespace cairn::tools {
namespace {

using Cross = JobFeatures::Cross;

[[noreturn]] void refuse(const Cross& cross, const std::string& why) {
  throw InvalidArgumentError(str(cross.place, ": features.crosses", why));
}

// The name of a column or feature in [features], and whether its examples have any number of ids or
// several of them.
bool has_several(const Job& job, const std::string& name) {
  const JobFeatures& features = job.features;
  if (features.text.contains(name) || features.id_padding.contains(name)) return true;
  return std::ranges::any_of(job.data.form().columns(), [&name](const ColumnType& column) {
    return column.name == name && !column.single;
  });
}

void verify_columns(const Job& job, const Cross& cross, const std::vector<std::string>& known) {
  for (const std::string& name : cross.columns) {
    if (std::ranges::find(known, name) == known.end())
      refuse(cross,
             str(" names \"", name, "\", which is no id feature: name features of ",
                 "vocabulary, hashed, bucketised (COLUMN_bucket), dates (COLUMN_hour) or ids",
                 names_there(name, known)));
    if (has_several(job, name))
      refuse(cross, str(" names \"", name, "\", whose examples may have several ids, and one per ",
                        "example is wanted: remove it from the cross"));
  }
}

// A cross that no part reads would be left out without a word.
void verify_parts(const Job& job, const Cross& cross) {
  const std::string& kind = job.model.kind;
  if (kind == "wide" && cross.deep)
    refuse(cross, str(".deep: \"", cross.name(), "\" is to be embedded, and model.kind = \"wide\" ",
                      "embeds nothing: remove deep, or set model.kind = \"wide_deep\""));
  if (!kind.starts_with("wide") && !cross.deep)
    refuse(cross, str(": \"", cross.name(), "\" is of the wide part, and model.kind = \"", kind,
                      "\" has none: embed it with deep = true, or remove it"));
}

// An index of candidates could not be made of vectors that depend on the query.
void verify_tower(const Cross& cross, const std::vector<std::string>& tower, const char* key) {
  if (std::ranges::find(tower, cross.name()) == tower.end()) return;
  for (const std::string& name : cross.columns)
    if (std::ranges::find(tower, name) == tower.end())
      refuse(cross, str(": ", key, " has \"", cross.name(), "\" and not \"", name,
                        "\": a tower's crosses are over features of its own"));
}

}  // namespace

void verify_crosses(const Job& job, const PlaceOf& place) {
  const std::vector<std::string> known = id_feature_names(job.features);
  std::set<std::string> taken(known.begin(), known.end());
  for (Cross cross : job.features.crosses) {
    if (cross.place.empty()) cross.place = place("features");
    verify_columns(job, cross, known);
    verify_parts(job, cross);
    if (cross.deep && !taken.insert(cross.name()).second)
      refuse(cross, str(": a second feature is called \"", cross.name(), "\": remove one of them"));
    verify_tower(cross, job.model.query, "model.query");
    verify_tower(cross, job.model.candidate, "model.candidate");
  }
}

}  // namespace cairn::tools
