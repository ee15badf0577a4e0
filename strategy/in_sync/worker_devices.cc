#include "strategy/in_sync/worker_devices.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/kernels/device.h"

namespace cairn {
namespace {

using Texts = std::vector<std::string>;

std::vector<Texts> told_texts(Collective& processes, const Texts& own) {
  std::vector<Texts> all;
  for (const Tensor& each :
       processes.all_gather(Tensor::strings({static_cast<std::int64_t>(own.size())}, own))) {
    const auto texts = each.string_values();
    all.emplace_back(texts.begin(), texts.end());
  }
  return all;
}

// A process's message to the others: how its devices sum values, why they do not, and then name and
// chip of each device.
Texts offer_of(std::span<Device* const> here) {
  DeviceSumMeans means = here.front()->sum_means();
  if (std::string obstacle = obstacle_to_sums(here); !obstacle.empty())
    means.why_not = std::move(obstacle);
  Texts offer = {means.by, means.why_not};
  for (Device* const each : here) {
    offer.emplace_back(each->name());
    offer.push_back(each->sum_means().chip);
  }
  return offer;
}

// Processes of one host may have been given the same GPU.
std::string shared_chip(const std::vector<Texts>& offers) {
  std::map<std::string, std::string> found;
  for (std::size_t worker = 0; worker < offers.size(); ++worker)
    for (std::size_t i = 2; i + 1 < offers[worker].size(); i += 2) {
      const std::string name = str(offers[worker][i], " of worker ", worker);
      const auto [there, is_new] = found.emplace(offers[worker][i + 1], name);
      if (!is_new) return str(there->second, " and ", name, " are the same GPU");
    }
  return {};
}

// Why the devices of these processes cannot be one group; empty: they can.
std::string obstacle_among(const std::vector<Texts>& offers) {
  for (std::size_t worker = 0; worker < offers.size(); ++worker)
    if (!offers[worker][1].empty()) return str("worker ", worker, ": ", offers[worker][1]);
  for (std::size_t worker = 1; worker < offers.size(); ++worker)
    if (offers[worker][0] != offers[0][0])
      return str("worker 0 sums ", offers[0][0], ", and worker ", worker, " ", offers[worker][0],
                 ": all must have the same");
  return shared_chip(offers);
}

// Catches the error instead of throwing it: the other processes wait for the text.
template <typename Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// The group, or why there is none: the same on all processes.
DeviceGroup joined(Collective& processes, std::span<Device* const> here, Duration timeout) {
  const std::vector<Texts> offers = told_texts(processes, offer_of(here));
  if (std::string obstacle = obstacle_among(offers); !obstacle.empty())
    return {{}, std::move(obstacle)};
  Texts made = {"", ""};
  if (processes.rank() == 0) made[1] = error_of([&] { made[0] = here.front()->new_group_id(); });
  const Tensor told = processes.broadcast(Tensor::strings({2}, made), 0);
  const auto id = told.string_values();
  if (!id[1].empty()) return {{}, str("worker 0: ", id[1])};
  const DeviceGroupPlace place{.size = processes.size() * static_cast<int>(here.size()),
                               .first = processes.rank() * static_cast<int>(here.size()),
                               .id = id[0],
                               .timeout = timeout};
  DeviceGroup group;
  const std::string error = error_of([&] { group = join_devices(here, place); });
  const std::vector<Texts> errors = told_texts(processes, {error});
  for (std::size_t worker = 0; worker < errors.size(); ++worker) {
    if (errors[worker][0].empty()) continue;
    if (!group.members.empty()) group.members.front()->abort();
    return {{}, str("worker ", worker, " could not connect: ", errors[worker][0])};
  }
  return group;
}

}  // namespace

DeviceGroup join_devices_of_workers(Collective* processes, std::span<Device* const> here,
                                    CommunicationImplementation wish, Duration timeout) {
  if (wish == CommunicationImplementation::kRing)
    return {{}, "CommunicationImplementation::kRing says so"};
  DeviceGroup group = processes == nullptr ? join_devices(here) : joined(*processes, here, timeout);
  if (wish == CommunicationImplementation::kNccl && group.members.empty())
    throw FailedPreconditionError(
        str("CommunicationImplementation::kNccl needs NCCL, and a GPU of its own for each replica, "
            "on every worker, and ",
            group.text, ": mend that, or choose kAuto, which goes through the host's memory then"));
  return group;
}

// ---- the watch ----

struct DeviceWatch::State {
  std::mutex mutex;  // guards what is below
  std::condition_variable changed;
  bool failed = false, ended = false;

  void set(bool State::*what) {
    const std::lock_guard hold(mutex);
    this->*what = true;
    changed.notify_all();
  }
};

// The thread waits until the group fails or the watch is destroyed, with the strategy.
DeviceWatch::DeviceWatch(Collective& processes, std::function<void()> abort)
    : state_(std::make_shared<State>()), thread_([state = state_, abort = std::move(abort)] {
        pthread_setname_np(pthread_self(), "device watch");
        std::unique_lock hold(state->mutex);
        state->changed.wait(hold, [&] { return state->failed || state->ended; });
        const bool failed = state->failed;
        hold.unlock();
        if (failed) abort();
      }) {
  processes.when_failed([state = state_] { state->set(&State::failed); });
}

DeviceWatch::~DeviceWatch() {
  state_->set(&State::ended);
  thread_.join();
}

}  // namespace cairn
