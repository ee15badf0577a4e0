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
constexpr const char* kGraphOfRun = "/graph";  // a model without weights, from the run's begin on
constexpr const char* kCheckpointsOfRun = "/checkpoints";

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

// A checkpoint says nothing of the graph: it is that of the run, or else of the run's model. Empty:
// the run has saved neither.
std::string graph_of(const std::string& run) {
  for (const char* each : {kGraphOfRun, kModelOfRun})
    if (is_saved_model(run + each)) return run + each;
  return {};
}

std::vector<VersionPlace> of_run(const std::string& run) {
  std::vector<VersionPlace> places;
  if (is_saved_model(run + kModelOfRun)) places.push_back(model_place(run + kModelOfRun));
  const std::string graph = graph_of(run);
  if (graph.empty()) return places;
  const storage::CheckpointFolder folder(storage::any_disk(), run + kCheckpointsOfRun);
  if (const auto latest = folder.latest()) {
    VersionPlace trained_on = checkpoint_place(graph, latest->path);
    if (places.empty() || trained_on.version > places.front().version)
      places.push_back(std::move(trained_on));
  }
  return places;
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
  const std::string graph = graph_of(run.string());
  if (graph.empty())
    throw InvalidArgumentError(
        str("the checkpoint ", checkpoint, " holds weights and no graph, and ", run.string(),
            " has no saved model (model, graph) that has one: serve the run, or save a model from ",
            "the checkpoint"));
  return {checkpoint_place(graph, checkpoint)};
}

}  // namespace

// A file that was written anew has another inode or another time.
std::string identity_of(const std::string& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return "";
  return str(about.st_dev, ':', about.st_ino, ':', about.st_mtim.tv_sec, '.', about.st_mtim.tv_nsec,
             ':', about.st_size);
}

std::optional<VersionPlace> place_to_follow(const std::string& path) {
  std::vector<VersionPlace> places = versions_at(path);
  if (!places.empty()) return places.back();
  const std::string graph = path + kGraphOfRun;
  if (!is_saved_model(graph)) return std::nullopt;
  VersionPlace untrained = model_place(graph);
  untrained.has_weights = false;
  return untrained;
}

std::vector<VersionPlace> versions_at(const std::string& path) {
  if (!is_folder(path))
    throw NotFoundError(str("there is no folder ", path, " to serve a model from"));
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (is_saved_model(folder)) return {model_place(folder)};
  if (system_disk().exists(folder + "/" + storage::kManifestFile)) return of_checkpoint(folder);
  for (const char* each : {kModelOfRun, kGraphOfRun, kCheckpointsOfRun})
    if (is_folder(folder + each)) return of_run(folder);
  std::vector<VersionPlace> places = of_versions(folder);
  if (places.empty() && !std::filesystem::is_empty(folder))
    throw InvalidArgumentError(str(folder, " is no saved model (", kModelFile,
                                   "), no run of `cairn train` (model, ",
                                   "checkpoints), no checkpoint (", storage::kManifestFile,
                                   "), and no folder of versions (1, 2, ...): name one of these"));
  return places;
}

}  // namespace cairn::serving
