#include "coordinator/cluster/variable_registry.h"

#include <algorithm>
#include <utility>

namespace cairn {
namespace {

// Compares all that decides which rows there are and how they are updated. Initial values do not:
// the rows are there.
bool same_variable(const VariableSpec& a, const VariableSpec& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.hashed == b.hashed &&
         a.policy == b.policy && a.trainable == b.trainable && a.aggregation == b.aggregation &&
         a.synchronization == b.synchronization && a.one_part == b.one_part;
}

std::string described(const VariableSpec& spec) {
  return str('"', spec.name, "\", ", dtype_name(spec.dtype), spec.shape.to_string(),
             spec.hashed ? ", hashed" : "");
}

}  // namespace

VariableRegistry::VariableRegistry(RegistryOptions options, std::vector<ShardLayout> shards)
    : options_(std::move(options)) {
  layout_ = std::make_shared<Layout>();
  layout_->version = 1;
  layout_->seed = options_.seed;
  layout_->shards = std::move(shards);
  shard_bytes_.resize(layout_->shard_count());
  for (ShardId shard = 0; shard < layout_->shard_count(); ++shard) {
    const std::uint32_t ps = layout_->shards[shard].home;
    if (ps >= ps_.size()) ps_.resize(ps + 1);
    ps_[ps].push_back(shard);
  }
}

VariableRegistry::VariableRegistry(RegistryOptions options, const Layout& found)
    : VariableRegistry(std::move(options), found.shards) {
  layout_ = std::make_shared<Layout>(found);
  found_ = static_cast<VariableId>(found.variables.size());
}

// Readers keep the version that they hold; a version that was handed out is never edited.
Layout& VariableRegistry::edit() {
  layout_ = std::make_shared<Layout>(*layout_);
  ++layout_->version;
  return *layout_;
}

std::vector<RowRange> VariableRegistry::partition(const VariableSpec& spec) const {
  if (!options_.partitioner || spec.shape.rank() == 0 || spec.one_part) return {{0, spec.rows()}};
  auto parts = (*options_.partitioner)(spec.shape, spec.dtype);
  if (parts.empty() || parts[0] < 1 ||
      std::any_of(parts.begin() + 1, parts.end(), [](auto n) { return n != 1; }))
    throw InvalidArgumentError(str("the partitioner must split variable \"", spec.name,
                                   "\", of shape ", spec.shape.to_string(),
                                   ", along its first axis only, into at least one part; it gave ",
                                   Shape(parts).to_string()));
  return split_rows(spec.rows(), parts[0]);
}

// In turns over the ps, as the reference, whose servers are not divided; within a ps, over its
// shards.
ShardId VariableRegistry::next_shard() const {
  // If several shards have the fewest bytes, the first of them is taken, so that the same program
  // places its variables alike in every run.
  if (options_.placement == Placement::kSizeAware)
    return static_cast<ShardId>(std::min_element(shard_bytes_.begin(), shard_bytes_.end()) -
                                shard_bytes_.begin());
  const std::vector<ShardId>& shards = ps_[placed_ % ps_.size()];
  return shards[placed_ / ps_.size() % shards.size()];
}

std::vector<Part> VariableRegistry::place(const VariableSpec& spec) {
  std::vector<Part> parts;
  for (const RowRange& rows : partition(spec)) {
    parts.push_back({next_shard(), rows});
    count_bytes(spec, parts.back());
    ++placed_;
  }
  return parts;
}

void VariableRegistry::count_bytes(const VariableSpec& spec, const Part& part) {
  // It is not known yet how many rows a hashed variable will have. All its parts count alike, so
  // that they are dealt out evenly.
  constexpr std::uint64_t kHashedPartBytes = std::uint64_t{256} << 20;
  shard_bytes_[part.shard] +=
      spec.hashed
          ? kHashedPartBytes
          : static_cast<std::uint64_t>(part.rows.size() * spec.dim()) * dtype_bytes(spec.dtype);
}

std::vector<Part> VariableRegistry::place_beside(const VariableSpec& spec,
                                                 const std::string& beside) {
  const VariableLayout* other = layout_->find(beside);
  if (other == nullptr)
    throw NotFoundError(str("variable \"", spec.name, "\" is to lie beside \"", beside,
                            "\", which this strategy did not make"));
  if (other->parts.size() != 1)
    throw InvalidArgumentError(str("variable \"", spec.name, "\" cannot lie beside \"", beside,
                                   "\", which is in ", other->parts.size(), " parts"));
  Part part{other->parts[0].shard, {0, spec.rows()}};
  count_bytes(spec, part);
  return {part};
}

std::shared_ptr<const VariableSpec> VariableRegistry::create(VariableSpec spec,
                                                             const std::string& beside) {
  if (!spec.shape.known())
    throw InvalidArgumentError(str("variable \"", spec.name, "\" has the shape ",
                                   spec.shape.to_string(), ": every dimension must be known"));
  if (spec.dtype == DType::kString)
    throw InvalidArgumentError(str("variable \"", spec.name, "\": variables do not hold strings"));
  std::lock_guard hold(mutex_);
  if (made_again_ < found_) return find_again(std::move(spec), beside);
  // Placed before the name is entered: a variable that is refused uses up no name.
  auto parts = beside.empty() ? place(spec) : place_beside(spec, beside);
  int count = names_[spec.name]++;
  if (count > 0) spec.name = str(spec.name, "_", count);
  VariableLayout made;
  made.spec = std::make_shared<const VariableSpec>(std::move(spec));
  made.parts = std::move(parts);
  Layout& layout = edit();
  made.id = static_cast<VariableId>(layout.variables.size());
  layout.variables.push_back(std::move(made));
  return layout.variables.back().spec;
}

// Bytes and turns are counted as when the variable was made, so that those that follow are placed
// as they would have been.
std::shared_ptr<const VariableSpec> VariableRegistry::find_again(VariableSpec spec,
                                                                 const std::string& beside) {
  const VariableLayout& found = layout_->variables[made_again_];
  int& count = names_[spec.name];
  if (count > 0) spec.name = str(spec.name, "_", count);
  const std::vector<RowRange> rows =
      beside.empty() ? partition(spec) : std::vector<RowRange>{{0, spec.rows()}};
  const bool same = same_variable(spec, *found.spec) &&
                    std::ranges::equal(rows, found.parts, {}, {}, &Part::rows);
  if (!same)
    throw FailedPreconditionError(str("variable number ", made_again_ + 1, " of this program is ",
                                      described(spec), ", in ", rows.size(),
                                      " parts; in the run that it goes on with it is ",
                                      described(*found.spec), ", in ", found.parts.size(),
                                      " parts, and lives on the ps: start the program that began "
                                      "the run, or give this one another journal"));
  ++count;
  for (const Part& part : found.parts) {
    count_bytes(*found.spec, part);
    if (beside.empty()) ++placed_;
  }
  ++made_again_;
  return found.spec;
}

void VariableRegistry::add_slots(const std::string& name, const UpdateRule& rule) {
  verify_rule(rule);
  if (is_assignment(rule.kind)) return;
  std::lock_guard hold(mutex_);
  // Several functions may be traced with one optimizer, and each asks for its slots. The same rule
  // once more changes nothing, and makes no new layout that lanes would have to be sent.
  const VariableLayout* found = layout_->find(name);
  if (found == nullptr) throw NotFoundError(str("this strategy made no variable \"", name, "\""));
  if (found->rule == rule) return;
  if (!is_assignment(found->rule.kind))
    throw FailedPreconditionError(str("variable \"", name, "\" is updated by ",
                                      rule_name(found->rule), " already; it cannot be given to ",
                                      rule_name(rule),
                                      " (or to the same with other constants) as well"));
  auto id = found->id;
  edit().variables[id].rule = rule;
}

std::shared_ptr<const Layout> VariableRegistry::layout() const {
  std::lock_guard hold(mutex_);
  return layout_;
}

// Compared by the specification's address: another strategy may have a variable of the same name.
void VariableRegistry::require_own(
    const std::vector<std::shared_ptr<const VariableSpec>>& variables) const {
  const std::shared_ptr<const Layout> here = layout();
  for (const auto& spec : variables) {
    const VariableLayout* found = here->find(spec->name);
    if (found == nullptr || found->spec != spec)
      throw FailedPreconditionError(
          str("Mixing different tf.distribute.Strategy objects: the variable \"", spec->name,
              "\" was made by another strategy; open its scope instead"));
  }
}

std::uint64_t VariableRegistry::version() const {
  std::lock_guard hold(mutex_);
  return layout_->version;
}

std::uint64_t VariableRegistry::placed() const {
  std::lock_guard hold(mutex_);
  return placed_;
}

void VariableRegistry::set_seed(std::uint64_t seed) {
  std::lock_guard hold(mutex_);
  // Rows that were never touched are not in a checkpoint: they are recomputed from the seed.
  // Variables that were made from another seed would have the wrong ones.
  if (layout_->seed == seed) return;
  if (!layout_->variables.empty())
    throw FailedPreconditionError(str(
        "the variables were made from seed ", layout_->seed, ", the checkpoint's from seed ", seed,
        ": restore before variables are made, or give the strategy the checkpoint's seed"));
  edit().seed = seed;
}

void VariableRegistry::set_primary(ShardId shard, ShardReplica primary) {
  std::lock_guard hold(mutex_);
  if (layout_->shards.at(shard).primary == primary) return;
  ShardLayout& changed = edit().shards[shard];
  changed.primary = std::move(primary);
  changed.backups.clear();
  ++changed.epoch.number;
}

void VariableRegistry::set_backups(ShardId shard, std::vector<ShardReplica> backups) {
  std::lock_guard hold(mutex_);
  if (layout_->shards.at(shard).backups == backups) return;
  edit().shards[shard].backups = std::move(backups);
}

}  // namespace cairn
