#include "serving/server/version_places.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "model/saved/model_file.h"
#include "storage/any_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"

namespace cairn::serving {
namespace {

constexpr const char* kModelOfRun = "/model";
constexpr const char* kCheckpointsOfRun = "/checkpoints";

// A file that was written anew has another inode or another time.
std::string identity_of(const std::string& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return "";
  return str(about.st_dev, ':', about.st_ino, ':', about.st_mtim.tv_sec, '.', about.st_mtim.tv_nsec,
             ':', about.st_size);
}

std::optional<std::int64_t> number_of(const std::string& name) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 0) return {};
  return number;
}

std::string file_of(const std::string& model) { return model + "/" + kModelFile; }

// The step alone, without a look at the other files: they are verified when it is loaded.
std::int64_t step_of(const std::string& model) {
  const std::string path = file_of(model);
  const Json about = parse_json(system_disk().read(path), path);
  return about.value("global_step", std::int64_t{0});
}

VersionPlace model_place(const std::string& model) {
  return {step_of(model), model, "", identity_of(file_of(model))};
}

VersionPlace checkpoint_place(const std::string& model, const std::string& checkpoint) {
  const std::int64_t step = storage::read_manifest(storage::any_disk(), checkpoint).global_step;
  return {
      step, model, checkpoint,
      identity_of(file_of(model)) + ' ' + identity_of(checkpoint + "/" + storage::kManifestFile)};
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// A checkpoint says nothing of the graph: it is that of the run's model.
std::vector<VersionPlace> of_run(const std::string& run) {
  const std::string model = run + kModelOfRun;
  if (!is_saved_model(model)) return {};
  VersionPlace newest = model_place(model);
  const storage::CheckpointFolder folder(storage::any_disk(), run + kCheckpointsOfRun);
  if (const auto latest = folder.latest()) {
    const VersionPlace trained_on = checkpoint_place(model, latest->path);
    if (trained_on.version > newest.version) newest = trained_on;
  }
  return {newest};
}

std::vector<VersionPlace> of_versions(const std::string& folder) {
  std::vector<VersionPlace> places;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto number = number_of(entry.path().filename().string());
    if (!number || !entry.is_directory()) continue;
    const std::string model = entry.path().string();
    places.push_back({*number, model, "", identity_of(file_of(model))});
  }
  std::ranges::sort(places, {}, &VersionPlace::version);
  return places;
}

std::vector<VersionPlace> of_checkpoint(const std::string& checkpoint) {
  const std::filesystem::path run = std::filesystem::path(checkpoint).parent_path().parent_path();
  const std::string model = run.string() + kModelOfRun;
  if (!is_saved_model(model))
    throw InvalidArgumentError(
        str("the checkpoint ", checkpoint, " holds weights and no graph, and ", model,
            " is no saved model that has one: serve the run, or save a model from the checkpoint"));
  return {checkpoint_place(model, checkpoint)};
}

}  // namespace

std::vector<VersionPlace> versions_at(const std::string& path) {
  if (!is_folder(path))
    throw NotFoundError(str("there is no folder ", path, " to serve a model from"));
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (is_saved_model(folder)) return {model_place(folder)};
  if (system_disk().exists(folder + "/" + storage::kManifestFile)) return of_checkpoint(folder);
  if (is_folder(folder + kModelOfRun) || is_folder(folder + kCheckpointsOfRun))
    return of_run(folder);
  std::vector<VersionPlace> places = of_versions(folder);
  if (places.empty() && !std::filesystem::is_empty(folder))
    throw InvalidArgumentError(str(folder, " is no saved model (", kModelFile,
                                   "), no run of `cairn train` (model, ",
                                   "checkpoints), no checkpoint (", storage::kManifestFile,
                                   "), and no folder of versions (1, 2, ...): name one of these"));
  return places;
}

}  // namespace cairn::serving
