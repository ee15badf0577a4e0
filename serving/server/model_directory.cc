#include "serving/server/model_directory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "serving/server/directory_state.h"
#include "serving/server/joined_examples.h"
#include "serving/server/version_candidates.h"

namespace cairn::serving {
namespace {

constexpr std::size_t kRemembered = 32;            // requests of a model
constexpr std::int64_t kRememberedExamples = 256;  // larger ones are not kept

std::string numbers(const std::map<std::int64_t, ServedVersion>& of) {
  std::string all;
  for (const auto& [version, served] : of) all += str(all.empty() ? "" : ", ", version);
  return all;
}

void verify_models(const std::vector<ModelToServe>& models, const DirectoryOptions& options) {
  std::set<std::string> names;
  for (const ModelToServe& model : models) {
    if (model.name.empty() || model.name.find_first_of("/:?#%") != std::string::npos)
      throw InvalidArgumentError(str("\"", model.name, "\" is no name for a model: it stands in ",
                                     "addresses, so it must have none of / : ? # %; write ",
                                     "NAME=PATH"));
    if (!names.insert(model.name).second)
      throw InvalidArgumentError(
          str("two models are named \"", model.name, "\": write NAME=PATH for one of them"));
    if (model.follow != nullptr && (model.pin || !model.labels.empty()))
      throw InvalidArgumentError(str("the model \"", model.name,
                                     "\" follows a run, whose rows have ",
                                     "no versions: leave out its pin and its labels"));
    if (model.follow != nullptr && options.memory_limit > 0)
      throw InvalidArgumentError(str(
          "the model \"", model.name, "\" follows a run, and is in memory as a whole: leave out ",
          "the memory limit, and leave tables that are too large on the ps (--from-ps)"));
  }
}

}  // namespace

ModelDirectory::ModelDirectory(std::vector<ModelToServe> models, DirectoryOptions options)
    : state_(std::make_unique<State>(options)) {
  if (models.empty()) throw InvalidArgumentError("there is no model to serve: name one");
  verify_models(models, options);
  for (ModelToServe& model : models) {
    versions_at(model.path);
    const std::string name = model.name;
    state_->models[name].what = std::move(model);
  }
  state_->thread = std::thread([state = state_.get()] { state->keep_looking(); });
}

ModelDirectory::~ModelDirectory() {
  give_up();
  state_->thread.join();
}

void ModelDirectory::give_up() {
  const std::lock_guard hold(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
}

ServedVersion ModelDirectory::find(const std::string& name, std::optional<std::int64_t> version,
                                   const std::string& label) const {
  const std::lock_guard hold(state_->mutex);
  const DirectoryModel& model = state_->model(name);
  if (!label.empty()) {
    const auto found = model.what.labels.find(label);
    if (found == model.what.labels.end()) {
      std::vector<std::string> labels;
      for (const auto& [each, of] : model.what.labels) labels.push_back(each);
      const std::string nearest = nearest_name(label, labels);
      throw NotFoundError(str("the model \"", name, "\" has no label \"", label, "\"",
                              nearest.empty() ? "" : str("; did you mean \"", nearest, "\"?")));
    }
    version = found->second;
  }
  if (!version) version = model.newest;
  if (!version)
    throw UnavailableError(str("the model \"", name, "\" has no version that serves yet"));
  const auto found = model.serving.find(*version);
  if (found == model.serving.end())
    throw NotFoundError(str("version ", *version, " of the model \"", name,
                            "\" does not serve; those that do: ", numbers(model.serving)));
  return found->second;
}

std::vector<std::string> ModelDirectory::names() const {
  const std::lock_guard hold(state_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, model] : state_->models) names.push_back(name);
  return names;
}

std::vector<VersionStatus> ModelDirectory::status(const std::string& name) const {
  const std::lock_guard hold(state_->mutex);
  const DirectoryModel& model = state_->model(name);
  std::map<std::int64_t, VersionStatus, std::greater<>> all;
  for (const auto& [version, served] : model.serving)
    all[version] = {version, VersionStatus::State::kAvailable, {}, ""};
  for (const auto& [version, why] : model.refused)
    if (!all.contains(version))
      all[version] = {version, VersionStatus::State::kRefused, why.code, why.error};
  if (model.loading && !model.serving.contains(*model.loading))
    all[*model.loading] = {*model.loading, VersionStatus::State::kLoading, {}, ""};
  std::vector<VersionStatus> list;
  for (auto& [version, status] : all) list.push_back(std::move(status));
  return list;
}

std::shared_ptr<const ReadCounters> ModelDirectory::reads(const std::string& name) const {
  const std::lock_guard hold(state_->mutex);
  return state_->model(name).reads;
}

const MemoryBudget* ModelDirectory::memory() const { return state_->memory.get(); }

bool ModelDirectory::ready() const {
  const std::lock_guard hold(state_->mutex);
  return std::ranges::all_of(state_->models,
                             [](const auto& each) { return each.second.newest.has_value(); });
}

void ModelDirectory::look() { state_->look(); }

void ModelDirectory::look_soon(std::function<void()> done) {
  {
    const std::lock_guard hold(state_->mutex);
    if (!state_->ended) {
      state_->asked.push_back(std::move(done));
      state_->changed.notify_all();
      return;
    }
  }
  done();
}

void ModelDirectory::remember(const std::string& name, const Element& columns, bool queries) {
  const std::lock_guard hold(state_->mutex);
  const auto found = state_->models.find(name);
  if (found == state_->models.end()) return;
  DirectoryModel& model = found->second;
  if (!model.newest) return;
  const ServedVersion& newest = model.serving.at(*model.newest);
  if (queries && newest.candidates == nullptr) return;
  const ServedModel& of = queries ? *newest.candidates->queries : *newest.served;
  if (examples_of(of.about().input, columns) > kRememberedExamples) return;
  std::deque<Element>& kept = queries ? model.remembered_queries : model.remembered;
  kept.push_back(columns);
  if (kept.size() > kRemembered) kept.pop_front();
}

}  // namespace cairn::serving
