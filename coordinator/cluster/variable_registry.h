// VariableRegistry: the strategy's variables and where their rows lie. Every change makes a new
// version of the Layout, and nothing is sent from here: ShardTables brings the newest version to
// the shards before a closure that needs it goes out. A variable is never removed, and its parts
// never move.
//   Thread  any; a snapshot is immutable.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/incarnation.h"
#include "core/graph/variable.h"
#include "core/rows/layout.h"

namespace cairn {

struct RegistryOptions {
  std::shared_ptr<const Partitioner> partitioner;  // none: every variable is one part
  // How parts are dealt out to shards: by default to the one with the fewest bytes.
  Placement placement = Placement::kSizeAware;
  std::uint64_t seed = 0;
  // HybridStrategy: after each step the workers' copies are compared, bit by bit. Copies that
  // differ, which would be a bug, are a FailedPrecondition naming two of the workers.
  bool check_replicas = false;
};

class VariableRegistry {
 public:
  VariableRegistry(RegistryOptions options, std::vector<ShardLayout> shards);
  // Goes on with the layout of an earlier coordinator of the session: the variables that the
  // program makes are those of the layout, one after the other, and lie where they lay.
  VariableRegistry(RegistryOptions options, const Layout& found);

  // `beside`: the name of a variable on whose shard this one is to lie, in one part, whatever
  // partitioner there is.
  //   Errors  InvalidArgument: the shape is not known; the partitioner asked for no part, or for a
  //           split of another axis than the first; the variable beside is in several parts.
  //           NotFound: there is none of that name. FailedPrecondition: another variable comes next
  //           in the run that is gone on with; names both.
  std::shared_ptr<const VariableSpec> create(VariableSpec spec, const std::string& beside = {});
  // FailedPrecondition: the variable has another rule with slots already.
  void add_slots(const std::string& name, const UpdateRule& rule);
  // FailedPrecondition naming a variable that another strategy made.
  void require_own(const std::vector<std::shared_ptr<const VariableSpec>>& variables) const;
  // The newest version. Who holds it goes on seeing that version, whatever is made later.
  std::shared_ptr<const Layout> layout() const;
  std::uint64_t version() const;
  // Variables and parts that were placed so far, those beside another not counted: the reference's
  // round-robin counter.
  std::uint64_t placed() const;
  // The seed of initial values, for a restore. FailedPrecondition: variables were made from another
  // one.
  void set_seed(std::uint64_t seed);
  // Another process, or another place, answers for the shard, from its next epoch on, and has no
  // backups yet. Nothing if it does already.
  void set_primary(ShardId shard, ShardReplica primary);
  // These have every update which the primary has answered.
  void set_backups(ShardId shard, std::vector<ShardReplica> backups);

 private:
  std::vector<RowRange> partition(const VariableSpec& spec) const;
  std::vector<Part> place(const VariableSpec& spec);
  std::shared_ptr<const VariableSpec> find_again(VariableSpec spec, const std::string& beside);
  std::vector<Part> place_beside(const VariableSpec& spec, const std::string& beside);
  void count_bytes(const VariableSpec& spec, const Part& part);
  ShardId next_shard() const;
  Layout& edit();

  mutable std::mutex mutex_;  // guards all below
  RegistryOptions options_;
  std::shared_ptr<Layout> layout_;
  std::map<std::string, int> names_;
  std::vector<std::uint64_t> shard_bytes_;
  std::vector<std::vector<ShardId>> ps_;  // the shards that each began with
  VariableId found_ = 0;                  // variables of an earlier coordinator, the first ones
  VariableId made_again_ = 0;             // so many of them this program has made
  std::uint64_t placed_ = 0;  // variables and parts so far: the reference's round-robin counter
};

}  // namespace cairn
