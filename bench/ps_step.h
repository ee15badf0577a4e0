// A step's work on a ps: random rows of 26 tables pulled, gradients pushed, under Adagrad.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "bench/cluster.h"
#include "coordinator/cluster/shard_client.h"
#include "ps/shard/shard.h"
#include "rpc/loop/reactor.h"
#include "rpc/net/network.h"
#include "worker/rows/remote_step.h"

namespace cairn::bench {

// rows of a table that a step touches
inline constexpr std::size_t kStepTables = 26, kStepRows = 2048;
inline constexpr std::int64_t kStepDim = 16;
// of each table, unless said otherwise
inline constexpr std::int64_t kStepTableRows = 1'000'000;
inline constexpr std::size_t kStepRowBytes = 2 * kStepDim * sizeof(float);  // with its slots

struct StepData {
  std::vector<Tensor> ids;  // a table each, ascending and distinct
  std::vector<Tensor> gradients;
  std::vector<std::int64_t> all_ids;  // the same, end to end
  std::vector<float> all_gradients;
};
using Steps = std::vector<StepData>;

// The shard itself, called in this thread.
class PsStepInProcess {
 public:
  explicit PsStepInProcess(std::int64_t table_rows = kStepTableRows, bool hashed = false);
  double run(int steps);  // seconds

 private:
  void step();
  void fill(std::int64_t table_rows);

  Steps steps_;
  ps::Shard shard_;
  std::vector<ps::ReadHeader> reads_;
  std::vector<ps::UpdateHeader> updates_;
  std::uint64_t next_ = 0;
  std::vector<std::byte> pulled_;
};

// A cairn-ps, and this process as the only worker: `depth` steps under way at once, on one thread.
class PsStepOverTheWire {
 public:
  PsStepOverTheWire(const std::string& transport, int shards,
                    std::int64_t table_rows = kStepTableRows,
                    RowEncoding encoding = RowEncoding::kRaw);
  ~PsStepOverTheWire();
  double run(int steps, int depth);  // seconds
  NamedProcesses processes() const;

 private:
  rpc::Task<void> configure(int shards, std::int64_t table_rows, RowEncoding encoding);
  void place_gradients();
  rpc::Task<void> step();

  TemporaryFolder folder_;
  Steps steps_;
  std::string address_;
  std::unique_ptr<tools::LocalCluster> servers_;
  std::unique_ptr<rpc::Reactor> reactor_;
  std::unique_ptr<rpc::Network> network_;
  std::vector<std::unique_ptr<ShardClient>> shards_;
  std::unique_ptr<worker::RemoteStore> store_;
  std::uint64_t next_ = 0;
};

}  // namespace cairn::bench
