// The part of ModelDirectory that looks for versions and loads them.
#include <malloc.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/log.h"
#include "core/base/look_up.h"
#include "serving/server/background.h"
#include "serving/server/directory_state.h"
#include "serving/server/version_candidates.h"
#include "serving/server/version_codecs.h"
#include "serving/server/warm_up.h"

namespace cairn::serving {
namespace {

constexpr Duration kRetryFirst = std::chrono::seconds(1), kRetryLast = std::chrono::seconds(30);
// Between two looks whether the requests of a version have ended, and how long for.
constexpr Duration kEndEvery = std::chrono::milliseconds(5), kEndPatience = std::chrono::seconds(2);
constexpr Duration kRowsPatience = std::chrono::seconds(10);

std::vector<VersionPlace> places_of(const DirectoryModel& of) {
  if (of.what.follow == nullptr) return versions_at(of.what.path);
  const auto place = place_to_follow(of.what.path);
  return place ? std::vector<VersionPlace>{*place} : std::vector<VersionPlace>();
}

// A model without weights has nothing to answer before its run's rows have come.
void wait_for_rows(const Follower& follower) {
  const TimePoint until = system_clock().now() + kRowsPatience;
  while (!follower.wait_complete(kLookUpEvery)) {
    look_up();
    if (system_clock().now() < until) continue;
    const Follower::Position position = follower.position();
    std::string why = position.trouble;
    for (const std::string& each : position.away) why += str(why.empty() ? "" : "; ", each);
    throw UnavailableError(str("the rows of its run have not all come, and it has no weights of ",
                               "its own", why.empty() ? "" : ": ", why));
  }
}

}  // namespace

// Loads the version unless it serves already, or was refused a moment ago. Whether it was loaded
// or refused now.
bool ModelDirectory::State::try_version(DirectoryModel& of, VersionPlace place) {
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
  let_end(kEndPatience);
  load(of, place);
  return true;
}

// Waits for versions that serve no longer, and that requests may still use, so that no more than
// two are in memory, and rows of the next one find room in the pools of the tables.
void ModelDirectory::State::let_end(Duration patience) {
  for (; patience > Duration::zero() && !stopping; patience -= kEndEvery) {
    give_back();
    std::unique_lock hold(mutex);
    if (retired.empty()) return;
    changed.wait_for(hold, kEndEvery, [this] { return stopping.load(); });
  }
}

// Whether it serves rows as its run changes them: those are newer than any checkpoint.
bool ModelDirectory::State::follows(const DirectoryModel& of) const {
  const std::lock_guard hold(mutex);
  return of.what.follow != nullptr && !of.serving.empty();
}

// A version that is wanted, and is not there or is there in another form, is loaded; one that is
// not wanted any more is retired once another serves. Where the newest version is refused and none
// serves that is to serve on, the one before it is wanted, too, and so on.
bool ModelDirectory::State::look_at(DirectoryModel& of) {
  if (follows(of)) return false;
  std::vector<VersionPlace> places;
  try {
    places = places_of(of);
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

void ModelDirectory::State::load(DirectoryModel& of, const VersionPlace& place) {
  ServeOptions how{.threads = options.threads,
                   .weights = place.weights,
                   .memory = memory,
                   .counters = of.reads,
                   .live = of.what.follow != nullptr,
                   .untrained = !place.has_weights,
                   .ps = of.what.from_ps ? of.what.follow : nullptr,
                   .ps_patience = of.what.ps_patience};
  RecentRequests requests, queries;
  std::shared_ptr<const VersionCandidates> candidates_before;
  {
    const std::lock_guard hold(mutex);
    of.loading = place.version;
    if (of.newest) {
      const ServedVersion& before = of.serving.at(*of.newest);
      if (!how.live) how.before = before.served;
      requests = {of.remembered, before.codecs->largest_batch()};
      candidates_before = before.candidates;
      if (before.candidates != nullptr)
        queries = {of.remembered_queries, before.candidates->codecs->largest_batch()};
    }
  }
  log_info("model ", of.what.name, ": loading version ", place.version, " from ", place.model);
  const TimePoint began = system_clock().now();
  // Reading and computing look up now and then, so that neither requests nor the server's end need
  // wait for them.
  const auto look = [this] {
    if (stopping) throw CancelledError("the server ends");
    give_way();
  };
  const LookUp looking_up(look, kGiveWayEvery);
  try {
    auto served = ServedModel::load(place.model, how);
    std::shared_ptr<Follower> follower;
    if (!served->live().empty()) {
      follower = std::make_shared<Follower>(of.what.name, served, of.what.follow);
      if (how.untrained) wait_for_rows(*follower);
    }
    warm_up(*served, requests, options.threads);
    const auto candidates = candidates_at(of.what, place, *served, options);
    verify_following(candidates_before.get(), candidates.get());
    if (candidates != nullptr) warm_up(*candidates->queries, queries, options.threads);
    const auto memory = served->memory();
    log_info("model ", of.what.name, ": version ", place.version, " serves, loaded in ",
             fixed(std::chrono::duration<double>(system_clock().now() - began).count(), 2), " s; ",
             memory.bytes >> 20, " MB, of which ", memory.shared >> 20,
             " MB are the version's before");
    const std::lock_guard hold(mutex);
    ServedVersion& at = of.serving[place.version];
    if (at.served != nullptr) retired.push_back(std::move(at));
    auto codecs = std::make_shared<VersionCodecs>(of.what.name, served, options.threads + 1);
    at = {of.what.name,      place.version, std::move(served),
          std::move(codecs), candidates,    std::move(follower)};
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
    RefusedVersion& refused = of.refused[place.version];
    if (refused.identity != place.identity || refused.error != why.message)
      log_warning("model ", of.what.name, ": version ", place.version, " in ", place.model,
                  " is refused", of.newest ? str(", and version ", *of.newest, " serves on") : "",
                  ": ", why.message);
    const Duration pause =
        refused.identity == place.identity ? std::min(kRetryLast, 2 * refused.pause) : kRetryFirst;
    refused = {place.identity, system_clock().now() + pause, pause, why.code, why.message};
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
  run_in_background();
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

}  // namespace cairn::serving
