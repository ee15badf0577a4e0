// AutoSaver: when the program is saved without having asked: every so many steps or seconds, and
// when another program asks (`cairn ckpt save`).
//
//   Steps    ProgressBook says when a save is due; the scheduler then calls save_if_due().
//   Seconds  a timer; a save for steps puts it off.
//   Asked    save_now(): one checkpoint for all who ask before it has begun. It is a task of the
//            engine's, not of the asker's call: half a save is not given up with a connection.
//   Thread   the engine's.
//   Errors   of a save for steps or seconds: logged and counted, since training is worth more than
//            one checkpoint and the next may work. Of one that was asked for: the askers'.
#pragma once
#include <kj/async.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/session.h"
#include "coordinator/progress/progress_book.h"
#include "rpc/loop/task.h"

namespace cairn {

// Saves checkpoints, one at a time; later calls wait. Checkpointer is one; a test's fake another.
class CheckpointSaver {
 public:
  virtual ~CheckpointSaver() = default;
  // The name of the checkpoint.
  virtual rpc::Task<std::string> save(CheckpointPolicy policy, std::string metadata) = 0;
  // A save or a restore is under way. When it ends, Session::changed is notified.
  virtual bool busy() const = 0;
};

class AutoSaver {
 public:
  AutoSaver(Session& session, ProgressBook& progress, CheckpointSaver& saver)
      : session_(session), progress_(progress), saver_(saver) {}

  // Saves by itself from now on, counted from now.
  void begin(CheckpointPolicy policy, std::string metadata);
  // Replaces the metadata of the saves that begin after this call.
  void set_metadata(std::string metadata) { metadata_ = std::move(metadata); }
  // A save for steps is due. If one is under way, it is asked again at the next step.
  void save_if_due();
  // The name of a checkpoint that begins after this call.
  //   Errors  FailedPrecondition: there is no policy. Those of the save.
  kj::Promise<std::string> save_now();

 private:
  rpc::Task<void> save_and_forget();
  rpc::Task<void> save_for_askers();
  rpc::Task<void> timed_saves();

  Session& session_;
  ProgressBook& progress_;
  CheckpointSaver& saver_;
  std::optional<CheckpointPolicy> policy_;
  std::string metadata_;
  TimePoint saved_at_{};  // when the last automatic checkpoint began or ended
  // for a checkpoint that has not begun
  std::vector<kj::Own<kj::PromiseFulfiller<std::string>>> askers_;
};

}  // namespace cairn
