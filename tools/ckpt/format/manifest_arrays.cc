#include "tools/ckpt/format/manifest_arrays.h"

#include <cstdio>

#include "core/base/error.h"
#include "core/base/json.h"

namespace cairn::tools::ckpt {
namespace {

constexpr const char* kManifestKey = "cairn.manifest";
constexpr const char* kUpdatesKey = "cairn.updates";

}  // namespace

std::vector<std::string> shard_files(const std::string& file, std::size_t count) {
  if (count == 1) return {file};
  const std::size_t dot = file.rfind('.');
  std::vector<std::string> files;
  for (std::size_t i = 1; i <= count; ++i) {
    char number[40];
    std::snprintf(number, sizeof number, "-%05zu-of-%05zu", i, count);
    files.push_back(file.substr(0, dot) + number + file.substr(dot));
  }
  return files;
}

ArrayMetadata metadata_of(const storage::Manifest& manifest, const Updates& updates) {
  return {{kManifestKey, storage::to_text(manifest)}, {kUpdatesKey, json_text(Json(updates))}};
}

bool read_metadata(const ArrayMetadata& metadata, const std::string& path,
                   storage::Manifest& manifest, Updates& updates) {
  const auto found = metadata.find(kManifestKey);
  if (found == metadata.end()) return false;
  manifest = storage::parse_manifest(found->second, path);
  if (const auto counts = metadata.find(kUpdatesKey); counts != metadata.end()) {
    try {
      updates = parse_json(counts->second, "its counts of updates").get<Updates>();
    } catch (const Json::exception& error) {
      throw DataLossError(str("the metadata of ", path, " was changed: ", error.what()));
    }
  }
  return true;
}

}  // namespace cairn::tools::ckpt
