// Checkpointer over fake ps and lanes: what the tests of saving and of restoring share.
#pragma once
#include <chrono>
#include <string>
#include <utility>

#include "coordinator/checkpoint/checkpointer.h"
#include "storage/manifest.h"
#include "storage/row_encoding.h"
#include "tests/coordinator/engine/part_fixture.h"

namespace cairn {

inline constexpr const char* kFirst = "/c/ckpt-00000001";
inline constexpr const char* kSecond = "/c/ckpt-00000002";

// Two ps of one shard, each with a variable, and two workers of one lane.
struct Checkpoints : PartTest {
  int pumped = 0;
  CheckpointParts parts{session, members, tables, lock, sources, progress, losses, ground.recorder};
  Checkpointer checkpointer{parts, CutMaker(parts, scheduler), [this] {
                              ++pumped;
                              scheduler.pump();
                            }};

  explicit Checkpoints(EngineOptions options = {}) : PartTest(std::move(options)) {
    start(2, 2);
    make_variables({"v", "w"});
    watch();
    forget_calls();
  }
  ~Checkpoints() override { stop(); }

  std::size_t full_every = 1, keep_last = 5;
  std::string local_folder;
  storage::RowEncoding encoding;
  kj::Promise<std::string> begin(const std::string& metadata = "{}") {
    auto saved = checkpointer
                     .save({.folder = "/c",
                            .keep_last = keep_last,
                            .full_every = full_every,
                            .encoding = encoding,
                            .local_folder = local_folder},
                           metadata)
                     .start();
    settle();
    return saved;
  }
  std::string save(const std::string& metadata = "{}") {
    auto saved = begin(metadata);
    return wait(saved);
  }
  kj::Promise<void> begin_restore(const std::string& checkpoint) {
    auto restored = checkpointer.restore(checkpoint, {}).start();
    settle();
    return restored;
  }
  void restore(const std::string& checkpoint) {
    auto restored = begin_restore(checkpoint);
    wait(restored);
  }
  // One update that is committed.
  void step() {
    const std::uint64_t sequence = schedule_and_send()->sequence;
    succeed(!received(0).empty() && received(0).back() == sequence ? 0 : 1, sequence);
  }
  bool exists(const std::string& checkpoint) {
    return ground.disk.exists(checkpoint + "/" + storage::kManifestFile);
  }
  // Has the folder anything of this checkpoint?
  bool left_over(const std::string& checkpoint) { return !ground.disk.list(checkpoint).empty(); }
  storage::Manifest manifest(const std::string& checkpoint) {
    return storage::read_manifest(ground.disk, checkpoint);
  }
  bool pushes_are_held() { return fake_lane(0).holds_pushes || fake_lane(1).holds_pushes; }
  void forget_calls() {
    for (std::size_t i : {0u, 1u}) fake_ps(i).calls.clear();
  }
  void lose(std::size_t i) {
    fake_ps(i).process.crash();
    settle();
  }
  void restart(std::size_t i) {
    fake_ps(i).start(new_process());
    run_for(std::chrono::seconds(1));
  }
};

}  // namespace cairn
