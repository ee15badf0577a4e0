#include "coordinator/engine/engine.h"

#include <utility>

#include "core/base/log.h"

namespace cairn {

// The parts are made in the order in which they refer to one another. Some callbacks point forward,
// to a part that is made later: none of them is called before start(), except by a closure that is
// queued, and the queue is not used before the constructor has ended.
Engine::Engine(Parts parts, EngineOptions options, std::shared_ptr<Waiting> waiting)
    : session_(parts, std::move(options), std::move(waiting), [this] { scheduler_.wake(); }),
      functions_([this](const RegisteredFunction& function) { policy_->verify(function); }),
      table_lock_(session_.changed),
      recorder_(session_),
      announcer_(session_, members_, recorder_, [this] { scheduler_.pump(); }),
      tables_(session_, members_, sources_, table_lock_, recorder_, [this] { scheduler_.pump(); }),
      fence_(session_, members_),
      outcomes_(session_, members_, books_.progress, books_.losses, recorder_,
                [this] { auto_saver_.save_if_due(); }),
      policy_(make_policy({session_, members_, table_lock_, books_.progress, outcomes_, recorder_,
                           [this] { scheduler_.pump(); }})),
      gate_(members_, tables_, table_lock_, announcer_, *policy_),
      scheduler_(session_, members_, tables_, gate_, *policy_, announcer_, books_.progress,
                 outcomes_, recorder_),
      checkpointer_(checkpoint_parts(), CutMaker(checkpoint_parts(), scheduler_),
                    [this] { scheduler_.pump(); }),
      auto_saver_(session_, books_.progress, checkpointer_),
      workers_(session_, members_, scheduler_, *policy_, fence_, books_.losses),
      ps_{PsGroup(session_, members_, tables_, table_lock_, sources_, fence_, announcer_,
                  books_.losses, recorder_, [this] { scheduler_.pump(); }),
          ReplicaKeeper(session_, members_, tables_, table_lock_, [this] { scheduler_.pump(); })},
      status_(session_, members_, gate_, table_lock_, checkpointer_) {}

Engine::~Engine() { stop(); }

CheckpointParts Engine::checkpoint_parts() {
  return {session_, members_,        tables_,       table_lock_,
          sources_, books_.progress, books_.losses, recorder_};
}

std::shared_ptr<const PerWorkerDataset> Engine::add_dataset(
    std::string name, std::vector<std::vector<std::byte>> descriptions, ElementSpec spec,
    bool shared) {
  auto dataset = books_.progress.add_dataset(std::move(name), std::move(descriptions),
                                             std::move(spec), shared);
  recorder_.dataset(*dataset, books_.progress);
  return dataset;
}

rpc::Task<void> Engine::note(std::string name, std::string text) {
  recorder_.note(name, text);
  co_await recorder_.kept();
}

void Engine::request_stop() {
  if (!program_.looks_for_stop)
    throw FailedPreconditionError(
        "this program does not look whether it is to stop (ClusterCoordinator::stop_requested): "
        "end its process");
  if (!program_.stop_requested.exchange(true)) log_info("the program is asked to stop");
}

}  // namespace cairn
