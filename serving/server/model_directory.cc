#include "serving/server/model_directory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "core/base/log.h"
#include "core/base/look_up.h"
#include "serving/model/served_model.h"
#include "serving/server/joined_examples.h"
#include "serving/server/version_candidates.h"
#include "serving/server/version_codecs.h"
#include "serving/server/version_places.h"

namespace cairn::serving {
namespace {

constexpr std::size_t kRemembered = 32;            // requests of a model
constexpr std::int64_t kRememberedExamples = 256;  // larger ones are not kept
constexpr Duration kRetryFirst = std::chrono::seconds(1), kRetryLast = std::chrono::seconds(30);
// Loading takes what the computing threads leave, and about a tenth of a core where they leave
// nothing.
constexpr int kLoadingNice = 10;

struct Refused {
  std::string identity;
  TimePoint again;
  Duration pause{};
  Code code = Code::kUnknown;
  std::string error;
};

struct Model {
  ModelToServe what;
  std::map<std::int64_t, ServedVersion> serving;   // by version
  std::map<std::int64_t, std::string> identities;  // of these
  std::map<std::int64_t, Refused> refused;
  std::optional<std::int64_t> loading;
  std::optional<std::int64_t> newest;  // that answers requests which name no version
  std::deque<Element> remembered, remembered_queries;
  std::shared_ptr<ReadCounters> reads = std::make_shared<ReadCounters>();
  std::string trouble;  // in looking at its path, as it was logged last
};

std::string numbers(const std::map<std::int64_t, ServedVersion>& of) {
  std::string all;
  for (const auto& [version, served] : of) all += str(all.empty() ? "" : ", ", version);
  return all;
}

void verify_names(const std::vector<ModelToServe>& models) {
  std::set<std::string> names;
  for (const ModelToServe& model : models) {
    if (model.name.empty() || model.name.find_first_of("/:?#%") != std::string::npos)
      throw InvalidArgumentError(str("\"", model.name, "\" is no name for a model: it stands in ",
                                     "addresses, so it must have none of / : ? # %; write ",
                                     "NAME=PATH"));
    if (!names.insert(model.name).second)
      throw InvalidArgumentError(
          str("two models are named \"", model.name, "\": write NAME=PATH for one of them"));
  }
}

}  // namespace

struct ModelDirectory::State {
  explicit State(DirectoryOptions of)
      : options(of), memory(of.memory_limit > 0 ? MemoryBudget::make(of.memory_limit) : nullptr) {}

  const Model& model(const std::string& name) const {
    const auto found = models.find(name);
    if (found != models.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [each, model] : models) names.push_back(each);
    const std::string nearest = nearest_name(name, names);
    std::string all;
    for (const std::string& each : names) all += str(all.empty() ? "" : ", ", each);
    throw NotFoundError(str(
        "there is no model \"", name, "\"",
        nearest.empty() ? str("; there are: ", all) : str("; did you mean \"", nearest, "\"?")));
  }

  // Whether there was something to load.
  bool look_at(Model& of);
  bool try_version(Model& of, VersionPlace place);
  void load(Model& of, const VersionPlace& place);
  void warm(const ServedModel& next, const std::deque<Element>& requests) const;
  // Whether a version has ended.
  bool give_back();
  void look();
  void keep_looking();

  const DirectoryOptions options;
  const std::shared_ptr<MemoryBudget> memory;
  std::mutex looking;        // one at a time looks and loads; taken before `mutex`
  mutable std::mutex mutex;  // guards all below
  std::condition_variable changed;
  std::map<std::string, Model> models;
  // Versions that requests may still use. They are let go of here, since to give back gigabytes
  // takes longer than a request.
  std::vector<ServedVersion> retired;
  std::vector<std::function<void()>> asked;  // to be called after the next look
  std::atomic<bool> stopping{false};         // set under the mutex
  bool ended = false;                        // the thread
  std::thread thread;
};

// Loads the version unless it serves already, or was refused a moment ago. Whether it was loaded
// or refused now.
bool ModelDirectory::State::try_version(Model& of, VersionPlace place) {
  if (options.read_candidates) place.identity += identity_of(candidates_file(of.what, place));
  {
    const std::lock_guard hold(mutex);
    const auto known = of.identities.find(place.version);
    if (known != of.identities.end() && known->second == place.identity) return false;
    const auto refused = of.refused.find(place.version);
    if (refused != of.refused.end() && refused->second.identity == place.identity &&
        system_clock().now() < refused->second.again)
      return false;
  }
  load(of, place);
  return true;
}

// A version that is wanted, and is not there or is there in another form, is loaded; one that is
// not wanted any more is retired once another serves. Where the newest version is refused and none
// serves that is to serve on, the one before it is wanted, too, and so on.
bool ModelDirectory::State::look_at(Model& of) {
  std::vector<VersionPlace> places;
  try {
    places = versions_at(of.what.path);
    of.trouble.clear();
  } catch (const std::exception& error) {
    if (std::exchange(of.trouble, error.what()) != error.what())
      log_warning("model ", of.what.name, ": ", error.what());
    return false;
  }
  std::set<std::int64_t> wanted;
  if (of.what.pin) wanted.insert(*of.what.pin);
  for (const auto& [label, version] : of.what.labels) wanted.insert(version);
  bool found = false;
  for (const VersionPlace& place : places)
    if (wanted.contains(place.version)) found = try_version(of, place) || found;
  for (auto place = places.rbegin(); place != places.rend() && !of.what.pin && !stopping; ++place) {
    if (wanted.insert(place->version).second) found = try_version(of, *place) || found;
    const std::lock_guard hold(mutex);
    if (of.serving.contains(place->version)) break;
  }
  const std::lock_guard hold(mutex);
  // A refused version is reported for as long as it is still there and wanted.
  std::erase_if(of.refused, [&](const auto& each) {
    return !wanted.contains(each.first) ||
           std::ranges::find(places, each.first, &VersionPlace::version) == places.end();
  });
  for (auto each = of.serving.begin(); each != of.serving.end();) {
    if (wanted.contains(each->first) || each->first == of.newest) {
      ++each;
      continue;
    }
    log_info("model ", of.what.name, ": version ", each->first, " serves no longer");
    retired.push_back(std::move(each->second));
    of.identities.erase(each->first);
    each = of.serving.erase(each);
  }
  return found;
}

void ModelDirectory::State::load(Model& of, const VersionPlace& place) {
  ServeOptions how{
      .threads = options.threads, .weights = place.weights, .memory = memory, .counters = of.reads};
  std::deque<Element> requests, queries;
  {
    const std::lock_guard hold(mutex);
    of.loading = place.version;
    if (of.newest) how.before = of.serving.at(*of.newest).served;
    requests = of.remembered;
    queries = of.remembered_queries;
  }
  log_info("model ", of.what.name, ": loading version ", place.version, " from ", place.model);
  const TimePoint began = system_clock().now();
  // Reading and computing look up now and then, so that the server's end need not wait for them.
  const LookUp look([this] {
    if (stopping) throw CancelledError("the server ends");
  });
  try {
    auto served = ServedModel::load(place.model, how);
    warm(*served, requests);
    const auto candidates = candidates_at(of.what, place, *served, options);
    if (candidates != nullptr) warm(*candidates->queries, queries);
    const auto memory = served->memory();
    log_info("model ", of.what.name, ": version ", place.version, " serves, loaded in ",
             fixed(std::chrono::duration<double>(system_clock().now() - began).count(), 2), " s; ",
             memory.bytes >> 20, " MB, of which ", memory.shared >> 20,
             " MB are the version's before");
    const std::lock_guard hold(mutex);
    ServedVersion& at = of.serving[place.version];
    if (at.served != nullptr) retired.push_back(std::move(at));
    auto codecs = std::make_shared<VersionCodecs>(of.what.name, served, options.threads + 1);
    at = {of.what.name, place.version, std::move(served), std::move(codecs), candidates};
    of.identities[place.version] = place.identity;
    of.refused.erase(place.version);
    const bool labelled = std::ranges::any_of(
        of.what.labels, [&](const auto& label) { return label.second == place.version; });
    if (!of.newest || place.version >= *of.newest || !labelled) of.newest = place.version;
    of.loading.reset();
  } catch (...) {
    const ErrorParts why = error_parts(std::current_exception());
    const std::lock_guard hold(mutex);
    of.loading.reset();
    if (stopping) return;
    Refused& refused = of.refused[place.version];
    if (refused.identity != place.identity || refused.error != why.message)
      log_warning("model ", of.what.name, ": version ", place.version, " in ", place.model,
                  " is refused", of.newest ? str(", and version ", *of.newest, " serves on") : "",
                  ": ", why.message);
    const Duration pause =
        refused.identity == place.identity ? std::min(kRetryLast, 2 * refused.pause) : kRetryFirst;
    refused = {place.identity, system_clock().now() + pause, pause, why.code, why.message};
  }
}

// The first run of a shape makes the graph ready for it, and the first read of a row brings it into
// the caches.
void ModelDirectory::State::warm(const ServedModel& next,
                                 const std::deque<Element>& requests) const {
  std::vector<const Element*> all;
  for (const Element& each : requests) all.push_back(&each);
  for (int thread = 0; thread < options.threads && !all.empty(); ++thread)
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

// The versions that end are declared before the lock, and so end after it.
bool ModelDirectory::State::give_back() {
  std::vector<ServedVersion> done;
  const std::lock_guard hold(mutex);
  for (ServedVersion& each : retired)
    if (each.codecs.use_count() == 1 && each.served.use_count() == 2 &&  // the codecs' and this one
        (each.candidates == nullptr || each.candidates.use_count() == 1))
      done.push_back(std::move(each));
  std::erase_if(retired, [](const ServedVersion& each) { return each.served == nullptr; });
  return !done.empty();
}

void ModelDirectory::State::keep_looking() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLoadingNice);
  const bool by_itself = options.look_every > Duration::zero();
  bool first = by_itself;
  std::unique_lock hold(mutex);
  for (;; first = false) {
    const auto wanted = [this] { return stopping || !asked.empty(); };
    if (by_itself && !first)
      changed.wait_for(hold, options.look_every, wanted);
    else if (!by_itself)
      changed.wait(hold, wanted);
    const auto done = std::exchange(asked, {});
    hold.unlock();
    if (!stopping) look();
    for (const auto& each : done) each();
    hold.lock();
    ended = stopping && asked.empty();
    if (ended) return;
  }
}

void ModelDirectory::State::look() {
  const std::lock_guard one(looking);
  bool changed = false;
  for (auto& [name, model] : models)
    if (!stopping) changed = look_at(model) || changed;
  changed = give_back() || changed;
  // Memory that loading took for a while stays in gaps of the heap otherwise: after 80 versions of
  // 22 MB 200 MB were resident instead of 81.
  if (changed) malloc_trim(0);
}

ModelDirectory::ModelDirectory(std::vector<ModelToServe> models, DirectoryOptions options)
    : state_(std::make_unique<State>(options)) {
  if (models.empty()) throw InvalidArgumentError("there is no model to serve: name one");
  verify_names(models);
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
  const Model& model = state_->model(name);
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
  const Model& model = state_->model(name);
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
  Model& model = found->second;
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
